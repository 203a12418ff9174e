// franz-go as the leader: reads the inputs, repeats the step, and writes the last answer.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type inputs struct {
	balancer kgo.GroupBalancer
	topics   map[string]int32
	joined   []kmsg.JoinGroupResponseMember
}

func main() {
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Println("failed", failure)
		}
	}()
	in := read(os.Args[1])
	fmt.Println("ready")
	answer := repeat(in, time.Duration(number(os.Args[3])), time.Duration(number(os.Args[4])), number(os.Args[5]))
	fmt.Println("peak", peak())
	write(os.Args[2], answer)
	fmt.Println("done")
}

const faster = 0.95

// repeat follows the same rule as all programs: until the step does not become faster any more.
func repeat(in inputs, patience, longest time.Duration, least int) []kmsg.SyncGroupRequestGroupAssignment {
	began := time.Now()
	improved, mark := began, math.Inf(1)
	for run := 1; ; run++ {
		start := time.Now()
		answer := step(in)
		end := time.Now()
		took := end.Sub(start)
		fmt.Println("run", took.Nanoseconds())
		if float64(took) < faster*mark {
			improved, mark = end, float64(took)
		}
		if run >= least && (end.Sub(began) > longest || end.Sub(improved) > patience) {
			return answer
		}
	}
}

// step does what the client does when its member is elected leader, without logging and bookkeeping.
func step(in inputs) []kmsg.SyncGroupRequestGroupAssignment {
	members := slices.Clone(in.joined)
	slices.SortFunc(members, func(a, b kmsg.JoinGroupResponseMember) int {
		return strings.Compare(a.MemberID, b.MemberID) // none is static
	})
	member, _, err := in.balancer.MemberBalancer(members)
	if err != nil {
		panic(err)
	}
	if canFail, ok := member.(kgo.GroupMemberBalancerOrError); ok {
		plan, err := canFail.BalanceOrError(in.topics)
		if err != nil {
			panic(err)
		}
		return plan.IntoSyncAssignment()
	}
	return member.Balance(in.topics).IntoSyncAssignment()
}

func balancer(name string) kgo.GroupBalancer {
	switch name {
	case "range":
		return kgo.RangeBalancer()
	case "roundrobin":
		return kgo.RoundRobinBalancer()
	case "sticky":
		return kgo.StickyBalancer()
	case "cooperative-sticky":
		return kgo.CooperativeStickyBalancer()
	}
	panic("no such balancer: " + name)
}

type reader struct{ left []byte }

func (r *reader) number() int {
	n := int32(binary.BigEndian.Uint32(r.left))
	r.left = r.left[4:]
	return int(n)
}

func (r *reader) bytes() []byte {
	length := r.number()
	if length < 0 {
		return nil
	}
	taken := r.left[:length:length]
	r.left = r.left[length:]
	return taken
}

func read(path string) inputs {
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	r := &reader{data}
	in := inputs{balancer: balancer(string(r.bytes())), topics: make(map[string]int32)}
	for left := r.number(); left > 0; left-- {
		r.bytes() // a node's rack, which only franz-go's client can hand to its balancers
	}
	for left := r.number(); left > 0; left-- {
		topic := string(r.bytes())
		partitions, replicas := r.number(), r.number()
		r.left = r.left[4*partitions*replicas:]
		in.topics[topic] = int32(partitions)
	}
	for left := r.number(); left > 0; left-- {
		member := kmsg.NewJoinGroupResponseMember()
		member.MemberID = string(r.bytes())
		member.ProtocolMetadata = r.bytes()
		in.joined = append(in.joined, member)
	}
	return in
}

func write(path string, answer []kmsg.SyncGroupRequestGroupAssignment) {
	var out bytes.Buffer
	put := func(data []byte) {
		out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
		out.Write(data)
	}
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(answer))))
	for _, member := range answer {
		put([]byte(member.MemberID))
		put(member.MemberAssignment)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		panic(err)
	}
}

// peak returns the most memory that the process has held, in bytes; 0 where Linux does not tell.
func peak() int {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			return 1024 * number(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		}
	}
	return 0
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
