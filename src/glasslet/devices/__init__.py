"""Device plugins: the devices that they offer, the pods that have them, and what a container gets with them.

    plugin ──Register──▶ registration ─▶ DeviceManager ◀── claim, allocate ── admission, pod workers
       ◀── options, ListAndWatch, Allocate, PreStartContainer ──┘ │ └─▶ node status, pod resources API
                                                                  ▼
                                                  Allocations ── checkpoint file

`inventory` (the devices), `allocation_plan` (the choice) and `container_devices` (a container's part) are pure.
"""
