"""The container runtime over gRPC: runtime.v1 as a client. `connection.connect` is the way in.

`calls` is the one edge that every call passes (record, metrics, errors, deadlines); `runtime_service` and
`image_service` are thin over it; `encode_*` and `decode` translate between our words and protobuf, which stays inside
this package.
"""
