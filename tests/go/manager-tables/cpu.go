package main

import (
	"math/rand"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/utils/cpuset"
)

// A hint as [mask or null, preferred].
type hint [2]any

func asHints(hints []topologymanager.TopologyHint) []hint {
	found := []hint{}
	for _, one := range hints {
		found = append(found, asHint(one))
	}
	return found
}

func asHint(one topologymanager.TopologyHint) hint {
	if one.NUMANodeAffinity == nil {
		return hint{nil, one.Preferred}
	}
	return hint{one.NUMANodeAffinity.GetBits(), one.Preferred}
}

// The topology manager as the other managers see it: the mask that was drawn last.
type store struct {
	mask   topologymanager.TopologyHint
	policy topologymanager.Policy
}

func (s *store) GetAffinity(string, string) topologymanager.TopologyHint { return s.mask }
func (s *store) GetPolicy() topologymanager.Policy                       { return s.policy }

type machine struct {
	Sockets int `json:"sockets"`
	Nodes   int `json:"nodes"`
	Caches  int `json:"caches"`
	Cores   int `json:"cores"`
	Threads int `json:"threads"`
	// Sibling threads are neighbours (0,1) rather than a stride apart (0,n).
	Neighbours bool `json:"neighbours"`
}

// Sockets x nodes x caches x cores are totals that divide each other, the larger by the smaller.
func drawMachine(random *rand.Rand) machine {
	shapes := [][2]int{{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 4}, {2, 1}, {4, 4}, {4, 2}}
	shape := shapes[random.Intn(len(shapes))]
	units := max(shape[0], shape[1])
	caches := units * (1 + random.Intn(3))
	return machine{Sockets: shape[0], Nodes: shape[1], Caches: caches, Cores: caches * (1 + random.Intn(4)),
		Threads: 1 + random.Intn(2), Neighbours: random.Intn(2) == 0}
}

func (m machine) topology() *topology.CPUTopology {
	details := topology.CPUDetails{}
	for core := range m.Cores {
		for thread := range m.Threads {
			cpu, id := core+thread*m.Cores, core
			if m.Neighbours {
				cpu, id = core*m.Threads+thread, core*m.Threads
			}
			details[cpu] = topology.CPUInfo{
				NUMANodeID: core * m.Nodes / m.Cores, SocketID: core * m.Sockets / m.Cores,
				UncoreCacheID: core * m.Caches / m.Cores, CoreID: id,
			}
		}
	}
	return &topology.CPUTopology{
		NumCPUs: m.Cores * m.Threads, NumCores: m.Cores, NumUncoreCache: m.Caches,
		NumSockets: m.Sockets, NumNUMANodes: m.Nodes, CPUDetails: details,
	}
}

type container struct {
	Kind string `json:"kind"`
	CPUs int    `json:"cpus"`
}

type cpuStep struct {
	Pod        string      `json:"pod"`
	Remove     bool        `json:"remove,omitempty"`
	Containers []container `json:"containers,omitempty"`
	PodHints   []hint      `json:"podHints,omitempty"`
	// Each container's hints, the mask that it was given, and its CPUs or the error.
	Hints   [][]hint `json:"hints,omitempty"`
	Masks   []any    `json:"masks,omitempty"`
	Got     []string `json:"got,omitempty"`
	Default string   `json:"default"`
}

type cpuResult struct {
	Machine     machine   `json:"machine"`
	Options     []string  `json:"options"`
	Reserved    int       `json:"reserved"`
	Allocatable string    `json:"allocatable"`
	Error       string    `json:"error,omitempty"`
	Steps       []cpuStep `json:"steps"`
	File        string    `json:"file,omitempty"`
}

var options = [][]string{
	{}, {"full-pcpus-only"}, {"distribute-cpus-across-numa"}, {"full-pcpus-only", "distribute-cpus-across-numa"},
	{"align-by-socket"}, {"distribute-cpus-across-cores"}, {"strict-cpu-reservation"},
	{"prefer-align-cpus-by-uncorecache"}, {"full-pcpus-only", "prefer-align-cpus-by-uncorecache"},
	{"full-pcpus-only", "strict-cpu-reservation", "align-by-socket"},
	{"strict-cpu-reservation", "distribute-cpus-across-numa"},
}

func cpuCase(random *rand.Rand) any {
	must(utilfeature.DefaultMutableFeatureGate.Set("CPUManagerPolicyAlphaOptions=true"))
	drawn := drawMachine(random)
	topo := drawn.topology()
	result := cpuResult{Machine: drawn, Options: options[random.Intn(len(options))], Reserved: 1 + random.Intn(min(3, topo.NumCPUs)), Steps: []cpuStep{}}
	given := map[string]string{}
	for _, name := range result.Options {
		given[name] = "true"
	}
	affinity := &store{policy: topologymanager.NewNonePolicy()}
	policy, err := cpumanager.NewStaticPolicy(topo, result.Reserved, cpuset.New(), affinity, given)
	if err != nil {
		result.Error = err.Error()
		return result
	}
	folder, err := os.MkdirTemp("", "cpus")
	must(err)
	defer os.RemoveAll(folder)
	held, err := state.NewCheckpointState(folder, "cpu_manager_state", "static", containermap.NewContainerMap())
	must(err)
	must(policy.Start(held))
	result.Allocatable = policy.GetAllocatableCPUs(held).String()
	pods := []*v1.Pod{}
	for at := range 2 + random.Intn(5) {
		if len(pods) > 0 && random.Intn(4) == 0 {
			gone := random.Intn(len(pods))
			result.Steps = append(result.Steps, removeCPUs(policy, held, pods[gone]))
			pods = append(pods[:gone], pods[gone+1:]...)
			continue
		}
		pod, containers := drawPod(random, "pod"+string(rune('a'+at)), 1+topo.NumCPUs/2)
		pods = append(pods, pod)
		result.Steps = append(result.Steps, allocateCPUs(random, policy, held, affinity, pod, containers))
	}
	text, err := os.ReadFile(folder + "/cpu_manager_state")
	must(err)
	result.File = string(text)
	return result
}

func drawPod(random *rand.Rand, name string, most int) (*v1.Pod, []container) {
	always := v1.ContainerRestartPolicyAlways
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	drawn := []container{}
	for range random.Intn(3) {
		kind := []string{"init", "sidecar"}[random.Intn(2)]
		drawn = append(drawn, container{kind, 1 + random.Intn(most)})
	}
	for range 1 + random.Intn(2) {
		drawn = append(drawn, container{"main", 1 + random.Intn(most)})
	}
	for at, one := range drawn {
		amounts := v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(int64(one.CPUs), resource.DecimalSI), v1.ResourceMemory: resource.MustParse("1Mi")}
		made := v1.Container{Name: "c" + string(rune('0'+at)), Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts}}
		if one.Kind == "main" {
			pod.Spec.Containers = append(pod.Spec.Containers, made)
			continue
		}
		if one.Kind == "sidecar" {
			made.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, made)
	}
	return pod, drawn
}

func every(pod *v1.Pod) []v1.Container {
	return append(append([]v1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...)
}

func allocateCPUs(random *rand.Rand, policy cpumanager.Policy, held state.State, affinity *store, pod *v1.Pod, containers []container) cpuStep {
	step := cpuStep{Pod: pod.Name, Containers: containers, PodHints: asHints(policy.GetPodTopologyHints(held, pod)["cpu"])}
	for _, one := range every(pod) {
		hints := policy.GetTopologyHints(held, pod, &one)["cpu"]
		affinity.mask = topologymanager.TopologyHint{}
		if len(hints) > 0 && random.Intn(3) > 0 {
			affinity.mask = hints[random.Intn(len(hints))]
			if random.Intn(4) == 0 {
				only, err := bitmask.NewBitMask(affinity.mask.NUMANodeAffinity.GetBits()[0])
				must(err)
				affinity.mask.NUMANodeAffinity = only
			}
		}
		step.Hints = append(step.Hints, asHints(hints))
		step.Masks = append(step.Masks, asHint(affinity.mask)[0])
		if err := policy.Allocate(held, pod, &one); err != nil {
			step.Got = append(step.Got, "error: "+err.Error())
			break
		}
		got, _ := held.GetCPUSet(string(pod.UID), one.Name)
		step.Got = append(step.Got, got.String())
	}
	step.Default = held.GetDefaultCPUSet().String()
	return step
}

func removeCPUs(policy cpumanager.Policy, held state.State, pod *v1.Pod) cpuStep {
	for _, one := range every(pod) {
		must(policy.RemoveContainer(held, string(pod.UID), one.Name))
	}
	return cpuStep{Pod: pod.Name, Remove: true, Default: held.GetDefaultCPUSet().String()}
}
