package main

import (
	"context"
	"math/rand"
	"os"
	"sort"

	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

const mebibyte = 1 << 20

type memoryNode struct {
	ID       int    `json:"id"`
	Memory   uint64 `json:"memory"`
	Pages    uint64 `json:"pages"`
	Reserved uint64 `json:"reserved"`
}

type memoryContainer struct {
	Kind   string `json:"kind"`
	Memory uint64 `json:"memory"`
	Huge   uint64 `json:"huge"`
}

type memoryStep struct {
	Pod        string            `json:"pod"`
	Remove     bool              `json:"remove,omitempty"`
	Containers []memoryContainer `json:"containers,omitempty"`
	PodHints   []hint            `json:"podHints,omitempty"`
	Hints      [][]hint          `json:"hints,omitempty"`
	Masks      []hint            `json:"masks,omitempty"`
	Errors     []string          `json:"errors,omitempty"`
	// All blocks of the pod in the end, and the machine.
	Blocks  map[string][]state.Block `json:"blocks,omitempty"`
	Machine state.NUMANodeMap        `json:"machine"`
}

type memoryResult struct {
	Nodes []memoryNode `json:"nodes"`
	Steps []memoryStep `json:"steps"`
	File  string       `json:"file"`
}

func memoryCase(ctx context.Context, random *rand.Rand) any {
	result := memoryResult{}
	info := &cadvisor.MachineInfo{}
	reserved := map[int]map[v1.ResourceName]uint64{}
	for id := range 1 + random.Intn(4) {
		node := memoryNode{ID: id, Memory: uint64(512+random.Intn(4)*256) * mebibyte, Pages: uint64(random.Intn(3) * 32), Reserved: uint64(random.Intn(3)*32) * mebibyte}
		if id == 0 {
			node.Reserved += 64 * mebibyte
		}
		result.Nodes = append(result.Nodes, node)
		reserved[id] = map[v1.ResourceName]uint64{v1.ResourceMemory: node.Reserved}
		info.Topology = append(info.Topology, cadvisor.Node{Id: id, Memory: node.Memory, HugePages: []cadvisor.HugePagesInfo{{PageSize: 2048, NumPages: node.Pages}}})
	}
	affinity := &store{policy: topologymanager.NewNonePolicy()}
	policy, err := memorymanager.NewPolicyStatic(ctx, info, reserved, affinity)
	must(err)
	folder, err := os.MkdirTemp("", "memory")
	must(err)
	defer os.RemoveAll(folder)
	held, err := state.NewCheckpointState(klog.FromContext(ctx), folder, "memory_manager_state", "Static")
	must(err)
	must(policy.Start(ctx, held))
	pods := []*v1.Pod{}
	for at := range 2 + random.Intn(4) {
		if len(pods) > 0 && random.Intn(4) == 0 {
			gone := random.Intn(len(pods))
			pod := pods[gone]
			for _, one := range every(pod) {
				policy.RemoveContainer(ctx, held, string(pod.UID), one.Name)
			}
			pods = append(pods[:gone], pods[gone+1:]...)
			result.Steps = append(result.Steps, memoryStep{Pod: pod.Name, Remove: true, Machine: held.GetMachineState()})
			continue
		}
		pod, kinds := drawPod(random, "pod"+string(rune('a'+at)), 1)
		pods = append(pods, pod)
		step := memoryStep{Pod: pod.Name, Containers: drawMemory(random, pod, kinds)}
		allocateMemory(ctx, random, policy, held, affinity, pod, &step)
		result.Steps = append(result.Steps, step)
	}
	text, err := os.ReadFile(folder + "/memory_manager_state")
	must(err)
	result.File = string(text)
	return result
}

func drawMemory(random *rand.Rand, pod *v1.Pod, kinds []container) []memoryContainer {
	drawn := []memoryContainer{}
	for at, list := 0, kinds; at < len(list); at++ {
		one := memoryContainer{Kind: list[at].Kind, Memory: uint64(32+random.Intn(30)*32) * mebibyte}
		if random.Intn(3) == 0 {
			one.Huge = uint64(1+random.Intn(40)) * 2 * mebibyte
		}
		drawn = append(drawn, one)
	}
	set := func(made *v1.Container, one memoryContainer) {
		amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: *resource.NewQuantity(int64(one.Memory), resource.BinarySI)}
		if one.Huge > 0 {
			amounts["hugepages-2Mi"] = *resource.NewQuantity(int64(one.Huge), resource.BinarySI)
		}
		made.Resources = v1.ResourceRequirements{Requests: amounts, Limits: amounts}
	}
	for at := range pod.Spec.InitContainers {
		set(&pod.Spec.InitContainers[at], drawn[at])
	}
	for at := range pod.Spec.Containers {
		set(&pod.Spec.Containers[at], drawn[len(pod.Spec.InitContainers)+at])
	}
	return drawn
}

func allocateMemory(ctx context.Context, random *rand.Rand, policy memorymanager.Policy, held state.State, affinity *store, pod *v1.Pod, step *memoryStep) {
	step.PodHints = asHints(policy.GetPodTopologyHints(ctx, held, pod)["memory"])
	for _, one := range every(pod) {
		hints := policy.GetTopologyHints(ctx, held, pod, &one)["memory"]
		affinity.mask = topologymanager.TopologyHint{Preferred: random.Intn(2) == 0}
		if len(hints) > 0 && random.Intn(3) > 0 {
			affinity.mask = hints[random.Intn(len(hints))]
		}
		step.Hints = append(step.Hints, asHints(hints))
		step.Masks = append(step.Masks, asHint(affinity.mask))
		if err := policy.Allocate(ctx, held, pod, &one); err != nil {
			step.Errors = append(step.Errors, err.Error())
			break
		}
		step.Errors = append(step.Errors, "")
	}
	step.Blocks = held.GetMemoryAssignments()[string(pod.UID)]
	for _, blocks := range step.Blocks {
		sort.Slice(blocks, func(i, j int) bool { return blocks[i].Type < blocks[j].Type })
	}
	step.Machine = held.GetMachineState()
}
