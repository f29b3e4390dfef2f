package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are the command line of the supervising process.
type options struct {
	dir                          string
	node                         string
	controllerManager, scheduler bool
	allowAll                     bool
	apiserverFlags               string
	controllerManagerFlags       string
	timeout                      time.Duration
}

// answer is the JSON line printed when the control plane is ready. Paths are absolute.
type answer struct {
	Server         string `json:"server"`
	Dir            string `json:"dir"`
	Kubeconfig     string `json:"kubeconfig"`
	NodeKubeconfig string `json:"nodeKubeconfig"`
	CA             string `json:"ca"`
	AuditLog       string `json:"auditLog"`
	BootstrapToken string `json:"bootstrapToken"`
	Pid            int    `json:"pid"`
}

const bootstrapToken = "abcdef.0123456789abcdef" // the documented example token; tests make its Secret

// plane is a running control plane.
type plane struct {
	options
	ctx       context.Context
	server    string
	authority *authority
	children  []*exec.Cmd
	died      chan error
	alive     sync.WaitGroup
}

func up(args []string) error {
	runtime.LockOSThread() // the parent-death signal of the components is tied to the thread that starts them
	var o options
	flags := flag.NewFlagSet("controlplane", flag.ExitOnError)
	flags.StringVar(&o.dir, "dir", "", "folder for keys, data and logs (default: a temporary one, removed at the end)")
	flags.StringVar(&o.node, "node", "node", "name of the node that the node kubeconfig is for")
	flags.BoolVar(&o.controllerManager, "controller-manager", false, "run kube-controller-manager")
	flags.BoolVar(&o.scheduler, "scheduler", false, "run kube-scheduler")
	flags.BoolVar(&o.allowAll, "allow-all", false, "AlwaysAllow and no service account admission instead of Node,RBAC and NodeRestriction")
	flags.StringVar(&o.apiserverFlags, "apiserver-flags", "", "more kube-apiserver flags, separated by spaces")
	flags.StringVar(&o.controllerManagerFlags, "controller-manager-flags", "", "more kube-controller-manager flags, separated by spaces")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long readiness may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "controlplane-")
		if err != nil {
			return err
		}
		o.dir = dir
		defer os.RemoveAll(dir)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	p := &plane{options: o, ctx: ctx, died: make(chan error, 8)}
	defer p.stop()
	if err := p.start(); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	out := answer{
		Server: p.server, Dir: p.dir, Kubeconfig: p.path("admin.kubeconfig"), NodeKubeconfig: p.path("node.kubeconfig"),
		CA: p.path("pki/ca.crt"), AuditLog: p.path("audit.log"), BootstrapToken: bootstrapToken, Pid: os.Getpid(),
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.died:
		return err
	}
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

func (p *plane) start() error {
	ports, err := freePorts(5)
	if err != nil {
		return err
	}
	if err := p.writeKeys(); err != nil {
		return err
	}
	p.server = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	for name, user := range map[string]string{"admin": "admin", "node": "node", "controller-manager": "controller-manager", "scheduler": "scheduler"} {
		if err := p.writeKubeconfig(name+".kubeconfig", user); err != nil {
			return err
		}
	}
	etcd := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	if err := p.run("etcd", p.path("etcd"), etcd, fmt.Sprintf("http://127.0.0.1:%d", ports[1])); err != nil {
		return err
	}
	if err := p.ready("etcd", etcd+"/health"); err != nil {
		return err
	}
	if err := p.run("kube-apiserver", p.apiserverArgs(etcd, ports[2])...); err != nil {
		return err
	}
	if err := p.ready("kube-apiserver", p.server+"/readyz"); err != nil {
		return err
	}
	if p.controllerManager {
		if err := p.run("kube-controller-manager", p.controllerManagerArgs(ports[3])...); err != nil {
			return err
		}
		if err := p.ready("kube-controller-manager", fmt.Sprintf("https://127.0.0.1:%d/healthz", ports[3])); err != nil {
			return err
		}
	}
	if p.scheduler {
		if err := p.run("kube-scheduler", p.schedulerArgs(ports[4])...); err != nil {
			return err
		}
		return p.ready("kube-scheduler", fmt.Sprintf("https://127.0.0.1:%d/livez", ports[4]))
	}
	return nil
}

func (p *plane) writeKeys() error {
	dir := p.path("pki")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	authority, err := newAuthority(dir)
	if err != nil {
		return err
	}
	p.authority = authority
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "10.0.0.1"}
	for _, c := range []struct {
		file, name    string
		organizations []string
		hosts         []string
	}{
		{"apiserver", "kube-apiserver", nil, names},
		{"kubelet-client", "kube-apiserver-kubelet-client", []string{"system:masters"}, nil},
		{"admin", "kubernetes-admin", []string{"system:masters"}, nil},
		{"controller-manager", "system:kube-controller-manager", nil, names},
		{"scheduler", "system:kube-scheduler", nil, names},
		{"node", "system:node:" + p.node, []string{"system:nodes"}, nil},
	} {
		if err := authority.issue(c.file, c.name, c.organizations, c.hosts); err != nil {
			return err
		}
	}
	_, err = newKey(filepath.Join(dir, "service-accounts.key"))
	return err
}

func (p *plane) writeKubeconfig(file, user string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: %s, user: {client-certificate: %q, client-key: %q}}]
contexts: [{name: test, context: {cluster: test, user: %s}}]
current-context: test
`, p.server, p.path("pki/ca.crt"), user, p.path("pki/"+user+".crt"), p.path("pki/"+user+".key"), user)
	return os.WriteFile(p.path(file), []byte(text), 0o600)
}

func (p *plane) apiserverArgs(etcd string, port int) []string {
	policy := p.path("audit-policy.yaml")
	_ = os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"), 0o600)
	args := []string{
		"--etcd-servers=" + etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--allow-privileged",
		"--service-cluster-ip-range=10.0.0.0/24", "--event-ttl=1h", "--enable-bootstrap-token-auth",
		"--tls-cert-file=" + p.path("pki/apiserver.crt"), "--tls-private-key-file=" + p.path("pki/apiserver.key"),
		"--client-ca-file=" + p.path("pki/ca.crt"),
		"--service-account-signing-key-file=" + p.path("pki/service-accounts.key"),
		"--service-account-key-file=" + p.path("pki/service-accounts.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--kubelet-client-certificate=" + p.path("pki/kubelet-client.crt"),
		"--kubelet-client-key=" + p.path("pki/kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--audit-log-path=" + p.path("audit.log"), "--audit-policy-file=" + policy,
	}
	if p.allowAll {
		args = append(args, "--authorization-mode=AlwaysAllow", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
	} else {
		args = append(args, "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction")
	}
	return append(args, strings.Fields(p.apiserverFlags)...)
}

func (p *plane) controllerManagerArgs(port int) []string {
	config := p.path("controller-manager.kubeconfig")
	args := []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--leader-elect=false",
		"--controllers=*,bootstrapsigner,tokencleaner", "--use-service-account-credentials", "--allocate-node-cidrs=false",
		"--service-account-private-key-file=" + p.path("pki/service-accounts.key"), "--root-ca-file=" + p.path("pki/ca.crt"),
		"--cluster-signing-cert-file=" + p.path("pki/ca.crt"), "--cluster-signing-key-file=" + p.path("pki/ca.key"),
	}
	return append(args, strings.Fields(p.controllerManagerFlags)...)
}

func (p *plane) schedulerArgs(port int) []string {
	config := p.path("scheduler.kubeconfig")
	return []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--leader-elect=false",
	}
}

// run starts a component; its output goes to NAME.log.
func (p *plane) run(name string, args ...string) error {
	log, err := os.Create(p.path(name + ".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self, append([]string{name}, args...)...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := command.Start(); err != nil {
		return err
	}
	p.children = append(p.children, command)
	p.alive.Add(1)
	go func() {
		defer p.alive.Done()
		err := command.Wait()
		p.died <- fmt.Errorf("%s ended: %v; the end of its log:\n%s", name, err, lastLines(log.Name(), 5))
	}()
	return nil
}

// ready waits until the URL answers 200.
func (p *plane) ready(name, url string) error {
	certificate, err := tls.LoadX509KeyPair(p.path("pki/admin.crt"), p.path("pki/admin.key"))
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		// A readiness question on loopback to a process started above: whom it is does not matter.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate}},
	}}
	deadline := time.After(p.timeout)
	for {
		response, err := client.Get(url)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.ctx.Done():
			return p.ctx.Err()
		case err := <-p.died:
			return err
		case <-deadline:
			return fmt.Errorf("%s is not ready after %s (see %s)", name, p.timeout, p.path(name+".log"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func lastLines(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// stop ends the components, last started first: KILL, as nothing of theirs is kept.
func (p *plane) stop() {
	for i := len(p.children) - 1; i >= 0; i-- {
		if err := p.children[i].Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			fmt.Fprintln(os.Stderr, "controlplane:", err)
		}
	}
	p.alive.Wait()
}

// freePorts finds ports on loopback that nobody listens on, below those that the kernel gives to outgoing connections:
// such a port is still free when it is used.
func freePorts(n int) ([]int, error) {
	var ports []int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for tries := 0; len(ports) < n; tries++ {
		port := 10000 + rand.IntN(32768-10000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			if tries > 1000 {
				return nil, err
			}
			continue
		}
		held = append(held, l)
		ports = append(ports, port)
	}
	return ports, nil
}
