"""Gets, keeps and renews the certificates of this node.

    bootstrap credentials ──▶ signing request ──▶ approved, signed ──▶ pair file, -current.pem link ──▶ kubeconfig
                                     ▲                                         │
                                     └────────── at 70..90 % of its life ──────┘

`client_identity` is for requests to the API server, `serving` for the HTTPS port. Rules: behaviours of the
Go kubelet, certificates; API: certificates.k8s.io/v1.
"""
