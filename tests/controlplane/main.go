// Command controlplane runs a real Kubernetes control plane on loopback for tests: etcd, kube-apiserver and, on request,
// kube-controller-manager and kube-scheduler. It prints one JSON line when all of them are ready and removes everything
// when it ends. Each component is a process of this same program, and dies with it.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	var command *cobra.Command
	switch name {
	case "etcd":
		if err := runEtcd(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "etcd:", err)
			os.Exit(1)
		}
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	default:
		if err := up(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "controlplane:", err)
			os.Exit(1)
		}
		return
	}
	os.Args = append([]string{name}, os.Args[2:]...)
	os.Exit(cli.Run(command))
}
