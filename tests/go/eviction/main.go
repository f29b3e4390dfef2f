// Runs the Go kubelet's own eviction manager on scripted figures: one JSON scenario a line in, the evictions in their
// order out. Tests compare them with ours.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/utils/clock"
)

// A Scenario is a node whose thresholds stay crossed until all pods that may go are gone.
type Scenario struct {
	Hard      map[string]string `json:"hard"`
	Dedicated bool              `json:"dedicated"`
	Split     bool              `json:"split"`
	Pods      []*v1.Pod         `json:"pods"`
	Summary   statsapi.Summary  `json:"summary"`
	Limits    bool              `json:"limits"`
}

// An Eviction is one pod that was chosen.
type Eviction struct {
	Pod     string `json:"pod"`
	Message string `json:"message"`
	Grace   int64  `json:"grace"`
}

// quiet is the number of readings without an eviction after which nothing more is expected.
const quiet = 4

// hasty waits a millisecond where the kubelet waits a second for a pod to be cleaned up: here it is at once.
type hasty struct{ clock.RealClock }

func (h hasty) NewTicker(time.Duration) clock.Ticker { return h.RealClock.NewTicker(time.Millisecond) }

type node struct {
	mutex    sync.Mutex
	scenario Scenario
	evicted  []Eviction
	readings int
	done     chan struct{}
}

func (n *node) Get(context.Context, bool) (*statsapi.Summary, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.readings++; n.readings == quiet {
		close(n.done)
	}
	// Every reading is newer than the last one.
	now := metav1.NewTime(time.Now())
	found := n.scenario.Summary
	if memory := found.Node.Memory; memory != nil {
		memory.Time = now
	}
	if fs := found.Node.Fs; fs != nil {
		fs.Time = now
	}
	if runtime := found.Node.Runtime; runtime != nil {
		runtime.ImageFs.Time = now
		runtime.ContainerFs.Time = now
	}
	if rlimit := found.Node.Rlimit; rlimit != nil {
		rlimit.Time = now
	}
	return &found, nil
}

func (n *node) GetCPUAndMemoryStats(ctx context.Context) (*statsapi.Summary, error) {
	return n.Get(ctx, false)
}

func (n *node) HasDedicatedImageFs(context.Context) (bool, error) { return n.scenario.Dedicated, nil }

func (n *node) HasDedicatedContainerFs(context.Context) (bool, error) { return n.scenario.Split, nil }

func (n *node) DeleteUnusedImages(context.Context) error { return nil }

func (n *node) DeleteAllUnusedContainers(context.Context) error { return nil }

func (n *node) pods() []*v1.Pod {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return slices.Clone(n.scenario.Pods)
}

func (n *node) kill(pod *v1.Pod, _ bool, grace *int64, change func(*v1.PodStatus)) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	status := v1.PodStatus{}
	change(&status)
	n.evicted = append(n.evicted, Eviction{Pod: pod.Name, Message: status.Message, Grace: *grace})
	n.scenario.Pods = slices.DeleteFunc(n.scenario.Pods, func(one *v1.Pod) bool { return one.UID == pod.UID })
	n.scenario.Summary.Pods = slices.DeleteFunc(slices.Clone(n.scenario.Summary.Pods), func(one statsapi.PodStats) bool {
		return one.PodRef.UID == string(pod.UID)
	})
	n.readings = 0
	return nil
}

func run(scenario Scenario) []Eviction {
	thresholds, err := eviction.ParseThresholdConfig(nil, scenario.Hard, nil, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	found := &node{scenario: scenario, done: make(chan struct{})}
	manager, _ := eviction.NewManager(found, eviction.Config{Thresholds: thresholds}, found.kill, found, found,
		&record.FakeRecorder{}, &v1.ObjectReference{Kind: "Node"}, hasty{}, scenario.Limits)
	manager.Start(found, found.pods, func(*v1.Pod) bool { return true }, time.Millisecond)
	<-found.done
	found.mutex.Lock()
	defer found.mutex.Unlock()
	return slices.Clone(found.evicted)
}

func main() {
	decoder, encoder := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for decoder.More() {
		var scenario Scenario
		if err := decoder.Decode(&scenario); err != nil {
			log.Fatal(err)
		}
		if err := encoder.Encode(run(scenario)); err != nil {
			log.Fatal(err)
		}
	}
}
