"""How this node gets, keeps and renews the certificates it is known by.

    bootstrap credentials ──▶ signing request ──▶ approved, signed ──▶ pair file, -current.pem link ──▶ kubeconfig
                                     ▲                                         │
                                     └────────── at 70..90 % of its life ──────┘

`client_identity` is the agent's own name at the API server, `serving` that of its HTTPS port. Rules: behaviours of the
Go kubelet, certificates; API: certificates.k8s.io/v1.
"""
