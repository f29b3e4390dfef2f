"""API objects that pods take their data from: ConfigMaps, Secrets, tokens, trust bundles, services.

PodObjects            which pod needs which ConfigMap and Secret; the strategies Watch, Cache and Get behind it
ServiceAccountTokens  tokens bound to a pod, renewed in time
Services              the services in the environments of containers
TrustBundles          ClusterTrustBundles
"""
