"""Device plugins: who offers which devices, who has them, and what a container with a device is given.

    plugin ──Register──▶ registration ─▶ DeviceManager ◀── claim, allocate ── admission, pod workers
       ◀── options, ListAndWatch, Allocate, PreStartContainer ──┘ │ └─▶ node status, pod resources API
                                                                  ▼
                                                  Allocations ── checkpoint file

`inventory` (what there is), `allocation` (who gets what) and `given` (what a container sees of it) are pure.
"""
