package main

import (
	"math/rand"

	cadvisor "github.com/google/cadvisor/info/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
)

type mergeResult struct {
	Policy    string              `json:"policy"`
	Nodes     int                 `json:"nodes"`
	Distances [][]uint64          `json:"distances"`
	Closest   bool                `json:"closest"`
	Providers []map[string][]hint `json:"providers"`
	Best      hint                `json:"best"`
	Admit     bool                `json:"admit"`
}

func mergeCase(random *rand.Rand) any {
	result := mergeResult{Policy: []string{"best-effort", "restricted", "single-numa-node"}[random.Intn(3)], Nodes: 1 + random.Intn(4), Closest: random.Intn(3) == 0}
	nodes := []cadvisor.Node{}
	for id := range result.Nodes {
		row := []uint64{}
		for other := range result.Nodes {
			distance := uint64(10 * (1 + random.Intn(3)))
			if other == id {
				distance = 10
			}
			row = append(row, distance)
		}
		result.Distances = append(result.Distances, row)
		nodes = append(nodes, cadvisor.Node{Id: id, Distances: row})
	}
	chosen := topologymanager.PolicyOptions{PreferClosestNUMA: result.Closest}
	info, err := topologymanager.NewNUMAInfo(nodes, chosen)
	must(err)
	var policy topologymanager.Policy
	switch result.Policy {
	case "best-effort":
		policy = topologymanager.NewBestEffortPolicy(info, chosen)
	case "restricted":
		policy = topologymanager.NewRestrictedPolicy(info, chosen)
	default:
		policy = topologymanager.NewSingleNumaNodePolicy(info, chosen)
	}
	given := []map[string][]topologymanager.TopologyHint{}
	for at := range random.Intn(4) {
		resources := map[string][]topologymanager.TopologyHint{}
		shown := map[string][]hint{}
		// One resource for each provider: Go's order of maps is random.
		name := "r" + string(rune('0'+at))
		switch random.Intn(6) {
		case 0:
		case 1:
			resources[name], shown[name] = nil, nil
		default:
			hints := drawHints(random, result.Nodes)
			resources[name], shown[name] = hints, asHints(hints)
		}
		given, result.Providers = append(given, resources), append(result.Providers, shown)
	}
	best, admit := policy.Merge(given)
	result.Best, result.Admit = asHint(best), admit
	return result
}

func drawHints(random *rand.Rand, nodes int) []topologymanager.TopologyHint {
	hints := []topologymanager.TopologyHint{}
	for range random.Intn(5) {
		one := topologymanager.TopologyHint{Preferred: random.Intn(2) == 0}
		if random.Intn(8) > 0 {
			bits := []int{}
			for id := range nodes {
				if random.Intn(2) == 0 {
					bits = append(bits, id)
				}
			}
			if len(bits) == 0 {
				bits = []int{random.Intn(nodes)}
			}
			mask, err := bitmask.NewBitMask(bits...)
			must(err)
			one.NUMANodeAffinity = mask
		}
		hints = append(hints, one)
	}
	return hints
}
