// Prints, as JSON, what the real CRI and kubelet modules say of their messages, enums and services.
package main

import (
	"encoding/json"
	"os"

	"google.golang.org/protobuf/reflect/protoreflect"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	devices "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	plugins "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	pods "k8s.io/kubelet/pkg/apis/podresources/v1"
	podsalpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

type field struct {
	Number   int    `json:"number"`
	Kind     string `json:"kind"`
	Repeated bool   `json:"repeated"`
	TypeName string `json:"type_name"`
}

type method struct {
	Input  string `json:"input"`
	Output string `json:"output"`
	Stream bool   `json:"stream"`
}

type listing struct {
	Messages map[string]map[string]field  `json:"messages"`
	Enums    map[string]map[string]int    `json:"enums"`
	Services map[string]map[string]method `json:"services"`
}

func main() {
	out := listing{map[string]map[string]field{}, map[string]map[string]int{}, map[string]map[string]method{}}
	for _, one := range []protoreflect.ProtoMessage{
		&cri.VersionRequest{}, &devices.Empty{}, &plugins.InfoRequest{},
		&pods.ListPodResourcesRequest{}, &podsalpha.ListPodResourcesRequest{},
	} {
		file := one.ProtoReflect().Descriptor().ParentFile()
		out.addMessages(file.Messages())
		out.addEnums(file.Enums())
		for i := range file.Services().Len() {
			out.addService(file.Services().Get(i))
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}

func (l listing) addMessages(messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		message := messages.Get(i)
		fields := map[string]field{}
		for j := range message.Fields().Len() {
			f := message.Fields().Get(j)
			fields[string(f.Name())] = field{int(f.Number()), f.Kind().String(), f.Cardinality() == protoreflect.Repeated, typeName(f)}
		}
		l.Messages[string(message.FullName())] = fields
		l.addMessages(message.Messages())
		l.addEnums(message.Enums())
	}
}

func typeName(f protoreflect.FieldDescriptor) string {
	if f.Message() != nil {
		return string(f.Message().FullName())
	}
	if f.Enum() != nil {
		return string(f.Enum().FullName())
	}
	return ""
}

func (l listing) addEnums(enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		values := map[string]int{}
		for j := range enums.Get(i).Values().Len() {
			value := enums.Get(i).Values().Get(j)
			values[string(value.Name())] = int(value.Number())
		}
		l.Enums[string(enums.Get(i).FullName())] = values
	}
}

func (l listing) addService(service protoreflect.ServiceDescriptor) {
	methods := map[string]method{}
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		methods[string(m.Name())] = method{string(m.Input().FullName()), string(m.Output().FullName()), m.IsStreamingServer()}
	}
	l.Services[string(service.FullName())] = methods
}
