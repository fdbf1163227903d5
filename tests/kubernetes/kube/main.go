// Command kube holds every part of a Kubernetes cluster that the tests need, as one static binary:
//
//	kube etcd|apiserver|controller-manager|scheduler|kubelet|proxy|kubectl ARGUMENTS...
//
// No registry of packages carries these binaries, and each of them built apart would compile the same libraries.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func() *cobra.Command{
	"apiserver":          apiserver.NewAPIServerCommand,
	"controller-manager": controllermanager.NewControllerManagerCommand,
	"scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":            func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"proxy":              proxy.NewProxyCommand,
	"kubectl":            kubectl.NewDefaultKubectlCommand,
}

func main() {
	if len(os.Args) < 2 {
		refuse("a component is missing")
	}
	component := os.Args[1]
	os.Args = append([]string{component}, os.Args[2:]...)
	if component == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := components[component]
	if !known {
		refuse(fmt.Sprintf("%q is no component", component))
	}
	os.Exit(cli.Run(command()))
}

func refuse(problem string) {
	fmt.Fprintf(os.Stderr, "kube: %s\nusage: kube etcd|apiserver|controller-manager|scheduler|kubelet|proxy|kubectl ARGUMENTS...\n", problem)
	os.Exit(2)
}
