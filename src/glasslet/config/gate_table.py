"""Every feature gate the 1.34 kubelet knows (all components share one list): stage, default, lock."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Stage(StrEnum):
    """How mature a feature is. AllAlpha and AllBeta act by it."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"
    DEPRECATED = "DEPRECATED"


class GateSpec(NamedTuple):
    """A locked gate may only be set to its default."""

    stage: Stage
    default: bool
    locked: bool


def _specs(stage: Stage, *, default: bool, locked: bool, names: str) -> dict[str, GateSpec]:
    spec = GateSpec(stage, default, locked)
    return dict.fromkeys(names.split(), spec)


# fmt: off
GATES: dict[str, GateSpec] = {
    **_specs(Stage.ALPHA, default=False, locked=False, names="AllAlpha"),
    **_specs(Stage.BETA, default=False, locked=False, names="AllBeta"),
    **_specs(Stage.ALPHA, default=False, locked=False, names="""
    AllowUnsafeMalformedObjectDeletion APIServingWithRoutine CBORServingAndStorage
    ClearingNominatedNodeNameAfterBinding ClientsAllowCBOR ClientsPreferCBOR CloudControllerManagerWebhook
    ComponentFlagz ComponentStatusz ContainerRestartRules ContainerStopSignals CPUManagerPolicyAlphaOptions
    CrossNamespaceVolumeDataSource CSIVolumeHealth CustomCPUCFSQuotaPeriod
    DeploymentReplicaSetTerminatingReplicas DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints
    DRAExtendedResource DRAPartitionableDevices EnvFiles EventedPLEG HostnameOverride HPAConfigurableTolerance
    HPAScaleToZero InformerResourceVersion InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory InTreePluginPortworxUnregister KubeletCrashLoopBackOffMax
    KubeletEnsureSecretPulledImages KubeletInUserNamespace LoggingAlphaOptions MaxUnavailableStatefulSet
    MemoryQoS NominatedNodeNameForExpectation PodAndContainerStatsFromCRI PodCertificateRequest
    PodLogsQuerySplitStreams PodTopologyLabelsAdmission QOSReserved ReduceDefaultCrashLoopBackOffDecay
    RelaxedServiceNameValidation ResourceHealthStatus RuntimeClassInImageCriApi StorageCapacityScoring
    StorageVersionAPI StorageVersionMigrator StrictIPCIDRValidation TopologyManagerPolicyAlphaOptions
    UnknownVersionInteroperabilityProxy UserNamespacesPodSecurityStandards WindowsCPUAndMemoryAffinity
"""),
    **_specs(Stage.BETA, default=False, locked=False, names="""
    ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
    DeclarativeValidationTakeover ImageVolume LocalStorageCapacityIsolationFSQuotaMonitoring
    MutableCSINodeAllocatableCount MutatingAdmissionPolicy NodeLogQuery SchedulerAsyncAPICalls SELinuxMount
    WatchCacheInitializationPostStartHook WatchListClient
"""),
    **_specs(Stage.BETA, default=True, locked=False, names="""
    AllowParsingUserUIDFromCertAuth APIResponseCompression APIServerIdentity ContainerCheckpoint
    ContextualLogging CPUManagerPolicyBetaOptions DeclarativeValidation DetectCacheInconsistency
    DisableCPUQuotaWithExclusiveCPUs DRAAdminAccess DRAPrioritizedList DRAResourceClaimDeviceStatus
    DRASchedulerFilterTimeout ExternalServiceAccountTokenSigner GracefulNodeShutdown
    GracefulNodeShutdownBasedOnPodPriority ImageMaximumGCAge InOrderInformers InPlacePodVerticalScaling
    JobManagedBy KubeletFineGrainedAuthz KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPSI
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
    LoggingBetaOptions MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    OpenAPIEnums PodDeletionCost PodLevelResources PodObservedGenerationTracking
    PodReadyToStartContainersCondition PortForwardWebsockets PreferSameTrafficDistribution
    PreventStaticPodAPIReferences ProcMountType ReloadKubeletServerCertificateFile RemoteRequestHeaderUID
    RotateKubeletServerCertificate SchedulerAsyncPreemption SchedulerPopFromBackoffQ SELinuxChangePolicy
    SELinuxMountReadWriteOncePod ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StatefulSetSemanticRevisionComparison StorageVersionHash StructuredAuthenticationConfigurationEgressSelector
    SupplementalGroupsPolicy SystemdWatchdog TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UserNamespacesSupport WatchList WindowsGracefulNodeShutdown
"""),
    **_specs(Stage.GA, default=True, locked=False, names="""
    DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout TopologyManagerPolicyOptions
    VolumeAttributesClass
"""),
    **_specs(Stage.GA, default=True, locked=True, names="""
    AnonymousAuthConfigurableEndpoints AnyVolumeDataSource APIServerTracing AuthorizeNodeWithSelectors
    AuthorizeWithSelectors BtreeWatchCache ComponentSLIs ConsistentListFromCache CPUManagerPolicyOptions
    CRDValidationRatcheting CronJobsScheduledAnnotation CSIMigrationPortworx CustomResourceFieldSelectors
    HonorPVReclaimPolicy JobBackoffLimitPerIndex JobPodReplacementPolicy JobSuccessPolicy
    KubeletCgroupDriverFromCRI KubeletTracing LoadBalancerIPMode LogarithmicScaleDown
    MatchLabelKeysInPodAffinity MemoryManager MultiCIDRServiceAllocator NFTablesProxyMode
    NodeInclusionPolicyInPodTopologySpread NodeSwap OrderedNamespaceDeletion PodIndexLabel
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodSchedulingReadiness
    ProbeHostPodSecurityStandards RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
    RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
    RetryGenerateName SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
    ServiceTrafficDistribution SidecarContainers SizeMemoryBackedVolumes StatefulSetAutoDeletePVC
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StrictCostEnforcementForVAP
    StrictCostEnforcementForWebhooks StructuredAuthenticationConfiguration StructuredAuthorizationConfiguration
    TopologyAwareHints WinDSR WinOverlay
"""),
    **_specs(Stage.DEPRECATED, default=False, locked=False, names="""
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver InPlacePodVerticalScalingAllocatedStatus
    KMSv1 KubeletRegistrationGetOnExistsOnly SeparateCacheWatchRPC WindowsHostNetwork
"""),
    **_specs(Stage.DEPRECATED, default=False, locked=True, names="""
    AllowServiceLBStatusOnNonLB WatchFromStorageWithoutResourceVersion
"""),
    **_specs(Stage.DEPRECATED, default=True, locked=False, names="""
    AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion KubeletPodResourcesListUseActivePods
    StorageNamespaceIndex
"""),
}
# fmt: on
LATER: dict[str, str] = {
    "AuthorizePodWebsocketUpgradeCreatePermission": "1.35",
    "ChangeContainerStatusOnKubeletRestart": "1.35",
    "CRIListStreaming": "1.36",
    "CSIServiceAccountTokenSecrets": "1.35",
    "DRADeviceTaintRules": "1.35",
    "DRAListTypeAttributes": "1.36",
    "DRANodeAllocatableResources": "1.36",
    "DRAResourceClaimGranularStatusAuthorization": "1.36",
    "DRAResourcePoolStatus": "1.36",
    "DRAWorkloadResourceClaims": "1.36",
    "ExtendWebSocketsToKubelet": "1.36",
    "GangScheduling": "1.35",
    "GenericWorkload": "1.35",
    "ImageVolumeWithDigest": "1.35",
    "InPlacePodLevelResourcesVerticalScaling": "1.35",
    "InPlacePodVerticalScalingInitContainers": "1.36",
    "NodeDeclaredFeatures": "1.35",
    "PLEGOnDemandRelist": "1.36",
    "PodLevelResourceManagers": "1.36",
    "PodsAPI": "1.36",
    "ReloadKubeletClientCAFile": "1.36",
    "ResourceHealthStatusMessage": "1.36",
    "RestartAllContainersOnContainerExits": "1.35",
    "TaintTolerationComparisonOperators": "1.35",
    "UserNamespacesHostNetworkSupport": "1.35",
    "VolumeLimitScaling": "1.35",
}
"""Gates of later releases, by release: a better answer than "unrecognized"."""
