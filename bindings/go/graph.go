package basalt

// #include "bridge.h"
import "C"

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// Properties are what is stored at a node or an edge, by name: nil, bool, int64, float64, string, []byte, time.Time (in
// milliseconds) and []any of these.
type Properties map[string]any

// Node is a node of a Graph.
type Node struct {
	ID         string // Up to 1024 bytes.
	Labels     []string
	Properties Properties
}

// Edge names an edge. There is one for each combination.
type Edge struct {
	From, Type, To string // IDs of nodes, and a type.
	Discriminator  string // Tells parallel edges of one type apart.
}

// EdgeContent is what is stored at an edge.
type EdgeContent struct {
	Weight     float64 // Not negative.
	Properties Properties
	ValidFrom  time.Time // When the fact holds, for reads as of a time. The zero Time: no bound.
	ValidTo    time.Time // The end, exclusive; the same.
	Expiry     time.Time // When the edge disappears by itself. The zero Time: never.
}

// Neighbor is an edge as it is seen from one of its nodes.
type Neighbor struct {
	ID            string `json:"id"` // The other end.
	Type          string `json:"type"`
	Direction     string `json:"direction"` // "out" or "in".
	Discriminator string `json:"discriminator"`
	Weight        float64
}

// Direction says which edges of a node a read follows.
type Direction uint32

const (
	Out  Direction = 0
	In   Direction = 1
	Both Direction = 2
)

// EdgeFilter says which edges a read follows. The zero value is all that leave a node.
type EdgeFilter struct {
	Direction  Direction
	Types      []string  // Empty: all.
	AsOf       time.Time // Only edges that were valid then. The zero Time: all that are stored.
	VisitedMax uint64    // Nodes; 0: a million. Then the answer is Truncated.
	FanOutMax  uint64    // Edges that are followed from one node; the same.
}

// Path is a way through a graph.
type Path struct {
	Nodes []string   `json:"nodes"`
	Edges []Neighbor `json:"edges"` // One less; Edges[i] leads from Nodes[i] to Nodes[i+1].
	Cost  float64    `json:"cost"`
}

// NodeScore is a node with its rank.
type NodeScore struct {
	ID    string  `json:"id"`
	Score float64 `json:"score"`
}

// GraphStats counts what a graph holds.
type GraphStats struct {
	Nodes         uint64 `json:"nodes"`
	Edges         uint64 `json:"edges"`
	Labels        uint64 `json:"labels"`
	EdgeTypes     uint64 `json:"edge_types"`
	PropertyNames uint64 `json:"property_names"`
	Removals      uint64 `json:"removals"`
}

// Graph is a property graph in a keyspace of a store.
type Graph struct {
	owner *graphHandle
	tx    *Tx
}

type graphHandle struct{ c *C.basalt_graph }

// OpenGraph opens a graph. Where it is absent it is made, unless mustExist: then it is NotFound.
func (s *Store) OpenGraph(name string, mustExist bool) (*Graph, error) {
	owner := &graphHandle{}
	p, n := bytesOf([]byte(name))
	r := results.Get().(*C.bridge_result)
	code := C.bridge_graph_open(s.h.c, p, n, C.bool(mustExist), &owner.c, r)
	runtime.KeepAlive(s)
	if err := finish(code, r); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(owner, func(g *graphHandle) { C.basalt_graph_free(g.c) })
	return &Graph{owner: owner}, nil
}

// In gives the graph as a transaction sees it: reads see its changes, and changes take effect when it commits. Paths,
// PageRank and Stats read the present moment all the same.
func (g *Graph) In(tx *Tx) *Graph { return &Graph{g.owner, tx} }

func (g *Graph) transaction() *C.basalt_transaction {
	if g.tx == nil {
		return nil
	}
	return g.tx.c
}

func (g *Graph) finish(code C.int, r *C.bridge_result) error {
	runtime.KeepAlive(g.tx)
	runtime.KeepAlive(g.owner)
	return finish(code, r)
}

// finishText is finish for a call that gives a text in r.large.
func finishText(code C.int, r *C.bridge_result) (text []byte, err error) {
	if r.large != nil {
		text = []byte(C.GoString(r.large))
		C.basalt_free(unsafe.Pointer(r.large))
		r.large = nil
	}
	return text, finish(code, r)
}

// PutNode adds a node, or replaces its labels and properties.
func (g *Graph) PutNode(node Node) error {
	content, err := json.Marshal(map[string]any{
		"labels": append([]string{}, node.Labels...), "properties": encodeProperties(node.Properties)})
	if err != nil {
		return &Error{Code: InvalidArgument, Message: "put node: " + err.Error()}
	}
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf([]byte(node.ID))
	c, m := bytesOf(content)
	return g.finish(C.basalt_graph_put_node(g.owner.c, g.transaction(), p, n, (*C.char)(c), m, &r.error), r)
}

// RemoveNode removes a node with its edges, and tells whether it was there.
func (g *Graph) RemoveNode(id string) (found bool, err error) {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf([]byte(id))
	code := C.basalt_graph_remove_node(g.owner.c, g.transaction(), p, n, &r.found, &r.error)
	found = bool(r.found) && code == 0
	return found, g.finish(code, r)
}

// PutEdge adds an edge, or replaces its content. NotFound: one of the nodes is absent.
func (g *Graph) PutEdge(edge Edge, content EdgeContent) error {
	members := map[string]any{"weight": encodeValue(content.Weight), "properties": encodeProperties(content.Properties)}
	for name, at := range map[string]time.Time{
		"valid_from_ms": content.ValidFrom, "valid_to_ms": content.ValidTo, "expiry_ms": content.Expiry} {
		if !at.IsZero() {
			members[name] = at.UnixMilli()
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		return &Error{Code: InvalidArgument, Message: "put edge: " + err.Error()}
	}
	r := results.Get().(*C.bridge_result)
	f, fn := bytesOf([]byte(edge.From))
	t, tn := bytesOf([]byte(edge.Type))
	o, on := bytesOf([]byte(edge.To))
	d, dn := bytesOf([]byte(edge.Discriminator))
	c, cn := bytesOf(text)
	return g.finish(C.bridge_graph_put_edge(g.owner.c, g.transaction(), f, fn, t, tn, o, on, d, dn, c, cn, r), r)
}

// RemoveEdge removes an edge, and tells whether it was there.
func (g *Graph) RemoveEdge(edge Edge) (found bool, err error) {
	r := results.Get().(*C.bridge_result)
	f, fn := bytesOf([]byte(edge.From))
	t, tn := bytesOf([]byte(edge.Type))
	o, on := bytesOf([]byte(edge.To))
	d, dn := bytesOf([]byte(edge.Discriminator))
	code := C.bridge_graph_remove_edge(g.owner.c, g.transaction(), f, fn, t, tn, o, on, d, dn, r)
	found = bool(r.found) && code == 0
	return found, g.finish(code, r)
}

// FinishRemovals removes the records that are left of nodes which transactions have removed.
func (g *Graph) FinishRemovals() error {
	r := results.Get().(*C.bridge_result)
	return g.finish(C.basalt_graph_finish_removals(g.owner.c, &r.error), r)
}

// GetNode gives a node; nil: there is none.
func (g *Graph) GetNode(id string) (*Node, error) {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf([]byte(id))
	text, err := finishText(C.basalt_graph_get_node(g.owner.c, g.transaction(), p, n, &r.large, &r.error), r)
	runtime.KeepAlive(g.owner)
	runtime.KeepAlive(g.tx)
	if err != nil || text == nil {
		return nil, err
	}
	var found struct {
		Labels     []string       `json:"labels"`
		Properties map[string]any `json:"properties"`
	}
	if err := decodeJSON(text, &found); err != nil {
		return nil, err
	}
	return &Node{ID: id, Labels: found.Labels, Properties: decodeProperties(found.Properties)}, nil
}

// GetEdge gives what is stored at an edge; nil: there is none.
func (g *Graph) GetEdge(edge Edge) (*EdgeContent, error) {
	r := results.Get().(*C.bridge_result)
	f, fn := bytesOf([]byte(edge.From))
	t, tn := bytesOf([]byte(edge.Type))
	o, on := bytesOf([]byte(edge.To))
	d, dn := bytesOf([]byte(edge.Discriminator))
	text, err := finishText(C.bridge_graph_get_edge(g.owner.c, g.transaction(), f, fn, t, tn, o, on, d, dn, r), r)
	runtime.KeepAlive(g.owner)
	runtime.KeepAlive(g.tx)
	if err != nil || text == nil {
		return nil, err
	}
	var found struct {
		Weight     float64        `json:"weight"`
		ValidFrom  *int64         `json:"valid_from_ms"`
		ValidTo    *int64         `json:"valid_to_ms"`
		Expiry     *int64         `json:"expiry_ms"`
		Properties map[string]any `json:"properties"`
	}
	if err := decodeJSON(text, &found); err != nil {
		return nil, err
	}
	content := &EdgeContent{Weight: found.Weight, Properties: decodeProperties(found.Properties)}
	for from, to := range map[*int64]*time.Time{
		found.ValidFrom: &content.ValidFrom, found.ValidTo: &content.ValidTo, found.Expiry: &content.Expiry} {
		if from != nil {
			*to = time.UnixMilli(*from)
		}
	}
	return content, nil
}

// Neighbors gives up to limit edges of a node, and where the next page begins: "" at the end. from is "" for the first
// page. An absent node has none.
func (g *Graph) Neighbors(id string, filter EdgeFilter, limit int, from string) (page []Neighbor, next string, err error) {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf([]byte(id))
	edges := filter.c()
	defer edges.free()
	begin := C.CString(from)
	defer C.free(unsafe.Pointer(begin))
	text, err := finishText(C.basalt_graph_neighbors(
		g.owner.c, g.transaction(), p, n, edges.filter, C.size_t(max(limit, 0)), begin, &r.large, &r.error), r)
	runtime.KeepAlive(g.owner)
	runtime.KeepAlive(g.tx)
	if err != nil {
		return nil, "", err
	}
	var answer struct {
		Neighbors []Neighbor `json:"neighbors"`
		Next      string     `json:"next"`
	}
	err = decodeJSON(text, &answer)
	return answer.Neighbors, answer.Next, err
}

// Paths gives up to limit paths of up to hops edges, shorter ones first. truncated: bounds of the filter cut some off.
func (g *Graph) Paths(from, to string, hops, limit int, filter EdgeFilter) (paths []Path, truncated bool, err error) {
	r := results.Get().(*C.bridge_result)
	f, fn := bytesOf([]byte(from))
	t, tn := bytesOf([]byte(to))
	edges := filter.c()
	defer edges.free()
	text, err := finishText(C.basalt_graph_paths(g.owner.c, f, fn, t, tn, C.uint32_t(max(hops, 0)),
		C.size_t(max(limit, 0)), edges.filter, &r.large, &r.error), r)
	runtime.KeepAlive(g.owner)
	if err != nil {
		return nil, false, err
	}
	var answer struct {
		Paths     []Path `json:"paths"`
		Truncated bool   `json:"truncated"`
	}
	err = decodeJSON(text, &answer)
	return answer.Paths, answer.Truncated, err
}

// PageRank gives the limit nodes of the greatest personalised PageRank, with these nodes as seeds.
func (g *Graph) PageRank(seeds []string, filter EdgeFilter, limit int) (nodes []NodeScore, truncated bool, err error) {
	r := results.Get().(*C.bridge_result)
	edges := filter.c()
	defer edges.free()
	ids := newNames(seeds)
	defer ids.free()
	text, err := finishText(C.basalt_graph_page_rank(g.owner.c, C.size_t(len(seeds)), ids.names, ids.sizes, edges.filter,
		C.size_t(max(limit, 0)), &r.large, &r.error), r)
	runtime.KeepAlive(g.owner)
	if err != nil {
		return nil, false, err
	}
	var answer struct {
		Nodes     []NodeScore `json:"nodes"`
		Truncated bool        `json:"truncated"`
	}
	err = decodeJSON(text, &answer)
	return answer.Nodes, answer.Truncated, err
}

// Stats counts; it reads all keys.
func (g *Graph) Stats() (stats GraphStats, err error) {
	r := results.Get().(*C.bridge_result)
	text, err := finishText(C.basalt_graph_stats(g.owner.c, &r.large, &r.error), r)
	runtime.KeepAlive(g.owner)
	if err != nil {
		return stats, err
	}
	return stats, decodeJSON(text, &stats)
}

// names is an array of strings in memory of C.
type names struct {
	names *unsafe.Pointer
	sizes *C.size_t
	count int
}

func newNames(from []string) names {
	if len(from) == 0 {
		return names{}
	}
	n := names{
		(*unsafe.Pointer)(C.malloc(C.size_t(len(from)) * C.size_t(unsafe.Sizeof(unsafe.Pointer(nil))))),
		(*C.size_t)(C.malloc(C.size_t(len(from)) * C.sizeof_size_t)), len(from)}
	for i, name := range from {
		unsafe.Slice(n.names, n.count)[i] = C.CBytes([]byte(name))
		unsafe.Slice(n.sizes, n.count)[i] = C.size_t(len(name))
	}
	return n
}

func (n names) free() {
	for _, name := range unsafe.Slice(n.names, n.count) {
		C.free(name)
	}
	C.free(unsafe.Pointer(n.names))
	C.free(unsafe.Pointer(n.sizes))
}

// edgeFilter is an EdgeFilter in memory of C.
type edgeFilter struct {
	filter *C.basalt_edge_filter
	types  names
}

func (f EdgeFilter) c() edgeFilter {
	c := edgeFilter{(*C.basalt_edge_filter)(C.calloc(1, C.sizeof_basalt_edge_filter)), newNames(f.Types)}
	c.filter.struct_size = C.sizeof_basalt_edge_filter
	c.filter.types, c.filter.type_sizes = c.types.names, c.types.sizes
	c.filter.type_count = C.size_t(len(f.Types))
	if !f.AsOf.IsZero() {
		c.filter.as_of_ms = C.int64_t(f.AsOf.UnixMilli())
	}
	c.filter.visited_max, c.filter.fan_out_max = C.uint64_t(f.VisitedMax), C.uint64_t(f.FanOutMax)
	c.filter.direction = C.uint32_t(f.Direction)
	return c
}

func (c edgeFilter) free() {
	c.types.free()
	C.free(unsafe.Pointer(c.filter))
}

// encodeProperties gives what json.Marshal makes the JSON of basalt/c.h of.
func encodeProperties(properties Properties) map[string]any {
	encoded := make(map[string]any, len(properties))
	for name, value := range properties {
		encoded[name] = encodeValue(value)
	}
	return encoded
}

func encodeValue(value any) any {
	switch v := value.(type) {
	case float64:
		switch {
		case math.IsNaN(v):
			return map[string]string{"$double": "nan"}
		case math.IsInf(v, 1):
			return map[string]string{"$double": "inf"}
		case math.IsInf(v, -1):
			return map[string]string{"$double": "-inf"}
		}
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.RawMessage(text)
	case []byte:
		return map[string]string{"$hex": hex.EncodeToString(v)}
	case time.Time:
		return map[string]int64{"$time_ms": v.UnixMilli()}
	case []string:
		return v
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = encodeValue(element)
		}
		return list
	}
	return value
}

func decodeProperties(from map[string]any) Properties {
	properties := make(Properties, len(from))
	for name, value := range from {
		properties[name] = decodeValue(value)
	}
	return properties
}

func decodeValue(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = decodeValue(v[i])
		}
	case map[string]any:
		if digits, ok := v["$hex"].(string); ok {
			bytes, _ := hex.DecodeString(digits)
			return bytes
		}
		if ms, ok := v["$time_ms"].(json.Number); ok {
			n, _ := ms.Int64()
			return time.UnixMilli(n)
		}
		if name, ok := v["$double"].(string); ok {
			f, _ := strconv.ParseFloat(name, 64)
			return f
		}
	}
	return value
}

func decodeJSON(text []byte, to any) error {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(to); err != nil {
		return fmt.Errorf("basalt: an answer of the library is no JSON: %w", err)
	}
	return nil
}
