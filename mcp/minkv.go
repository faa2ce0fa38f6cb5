package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"basalt"
)

// The nine tools of MinKV's MCP server, with its names and shapes, for clients that were set up for it. Where that asked
// a service for an embedding of a text, these find texts by words and links: nothing leaves the machine. Its nodes are
// entities, its texts are documents.

type vectorInsertArguments struct {
	Key      string         `json:"key" jsonschema:"the name of the text: the same name replaces it"`
	Text     string         `json:"text" jsonschema:"the text"`
	Metadata map[string]any `json:"metadata,omitempty" jsonschema:"what vector_search shall give with it"`
}

func vectorInsert(s *space, tx *basalt.Tx, a vectorInsertArguments) (kvDone, error) {
	kept := kvDone{true, a.Key, "the text is kept"}
	if _, err := ingest(s, tx, ingestArguments{Source: a.Key, Text: a.Text}); err != nil || a.Metadata == nil {
		return kept, err
	}
	metadata, err := json.Marshal(a.Metadata)
	if err != nil {
		return kept, err
	}
	if len(metadata) > valueBytesMax {
		return kept, refuse("the metadata has %d bytes, and may have up to %d", len(metadata), valueBytesMax)
	}
	return kept, tx.PutIn(s.texts, []byte(metadataPrefix+docPrefix+a.Key), metadata)
}

type vectorSearchArguments struct {
	Query string `json:"query" jsonschema:"what to look for, in any words"`
	TopK  int    `json:"top_k,omitempty" jsonschema:"the greatest number of results, up to 100; 5 unless given"`
	Limits
}

type vectorHit struct {
	Rank     int            `json:"rank"`
	Key      string         `json:"key"`
	Score    float64        `json:"score"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

type vectorSearchResult struct {
	Results []vectorHit `json:"results" jsonschema:"best first"`
	Rest
}

// keysFound gives the documents that fit a query best, each once.
func (s *space) keysFound(query string, limit int, budget *budget) (vectorSearchResult, error) {
	result := vectorSearchResult{Results: []vectorHit{}}
	if strings.TrimSpace(query) == "" {
		return result, refuse("the query is empty: say what to look for")
	}
	if s == nil {
		return result, nil
	}
	// A long document has several passages, and entities are found too.
	found, _, err := s.corpus.Retrieve(query, basalt.RetrieveOptions{K: 4*limit + 16})
	if err != nil {
		return result, err
	}
	seen := map[string]bool{}
	for _, passage := range found {
		key, isDocument := strings.CutPrefix(passage.Source, docPrefix)
		if !isDocument || seen[key] || len(result.Results) == limit {
			continue
		}
		seen[key] = true
		hit := vectorHit{Rank: len(result.Results) + 1, Key: key, Score: passage.Score}
		metadata, found, err := s.texts.Get([]byte(metadataPrefix + docPrefix + key))
		if err == nil && found {
			err = json.Unmarshal(metadata, &hit.Metadata)
		}
		if err != nil {
			return result, err
		}
		if !budget.take(hit) && len(result.Results) > 0 {
			result.LeftOut = "more results did not fit into max_tokens"
			break
		}
		result.Results = append(result.Results, hit)
	}
	return result, nil
}

func vectorSearch(_ *Memory, s *space, a vectorSearchArguments) (vectorSearchResult, error) {
	return s.keysFound(a.Query, Limits{Limit: a.TopK}.limit(5, 100), a.budget())
}

type nodeArguments struct {
	NodeID         string `json:"node_id" jsonschema:"the name of the node"`
	PropertiesJSON string `json:"properties_json,omitempty" jsonschema:"its properties, a JSON object"`
	Text           string `json:"text,omitempty" jsonschema:"a text by which graph_rag_query finds it"`
}

type nodeDone struct {
	Success bool   `json:"success"`
	NodeID  string `json:"node_id"`
}

func checkObject(text string) (string, error) {
	if text == "" {
		return "{}", nil
	}
	var members map[string]any
	if len(text) > valueBytesMax || json.Unmarshal([]byte(text), &members) != nil {
		return "", refuse("properties_json is not a JSON object of up to %d bytes", valueBytesMax)
	}
	return text, nil
}

// addNode adds a node, or replaces it; its edges stay.
func addNode(s *space, tx *basalt.Tx, a nodeArguments) (nodeDone, error) {
	properties, err := checkObject(a.PropertiesJSON)
	if err != nil {
		return nodeDone{}, err
	}
	entity := Entity{Name: a.NodeID, EntityType: "node", Observations: []string{}}
	if a.Text != "" {
		entity.Observations = []string{a.Text}
	}
	if err := s.putEntity(tx, entity); err != nil {
		return nodeDone{}, err
	}
	return nodeDone{true, a.NodeID}, tx.PutIn(s.texts, []byte(entityPrefix+a.NodeID), []byte(properties))
}

type edgeArguments struct {
	SrcID          string   `json:"src_id" jsonschema:"the node where the edge begins"`
	DstID          string   `json:"dst_id" jsonschema:"the node where it ends"`
	Label          string   `json:"label" jsonschema:"the type of the edge"`
	Weight         *float64 `json:"weight,omitempty" jsonschema:"1 unless given"`
	PropertiesJSON string   `json:"properties_json,omitempty" jsonschema:"its properties, a JSON object"`
}

type edgeDone struct {
	Success bool   `json:"success"`
	SrcID   string `json:"src_id"`
	DstID   string `json:"dst_id"`
	Label   string `json:"label"`
}

// addEdge adds an edge, or replaces its weight and properties.
func addEdge(s *space, tx *basalt.Tx, a edgeArguments) (edgeDone, error) {
	properties, err := checkObject(a.PropertiesJSON)
	if err != nil {
		return edgeDone{}, err
	}
	if a.Weight != nil && !(*a.Weight >= 0) {
		return edgeDone{}, refuse("the weight is %v, and must not be negative", *a.Weight)
	}
	relation := Relation{From: a.SrcID, To: a.DstID, RelationType: a.Label}
	if _, err := s.putRelation(tx, relation); err != nil {
		return edgeDone{}, err
	}
	content := basalt.EdgeContent{Weight: 1, ValidFrom: now(), Properties: basalt.Properties{"json": properties}}
	if a.Weight != nil {
		content.Weight = *a.Weight
	}
	s.pending.written = true
	return edgeDone{true, a.SrcID, a.DstID, a.Label}, s.graph.In(tx).PutEdge(relation.edge(), content)
}

type ragArguments struct {
	Query       string `json:"query" jsonschema:"what to look for, in any words"`
	VectorTopK  int    `json:"vector_top_k,omitempty" jsonschema:"how many nodes to begin with, up to 20; 3 unless given"`
	HopDepth    *int   `json:"hop_depth,omitempty" jsonschema:"how many edges to follow from them, up to 4; 2 unless given"`
	MaxKeywords int    `json:"max_keywords,omitempty" jsonschema:"not used: all words count"`
	Limits
}

type ragNode struct {
	NodeID         string `json:"node_id"`
	PropertiesJSON string `json:"properties_json"`
	Text           string `json:"text,omitempty"`
}

type ragResult struct {
	NodeCount int       `json:"node_count"`
	Nodes     []ragNode `json:"nodes" jsonschema:"those that were found first, then what edges lead to"`
	Rest
}

// ragQuery finds nodes by their texts, and those to which edges lead from there.
func ragQuery(_ *Memory, s *space, a ragArguments) (ragResult, error) {
	result := ragResult{Nodes: []ragNode{}}
	if strings.TrimSpace(a.Query) == "" {
		return result, refuse("the query is empty: say what to look for")
	}
	offset, err := parseOffset(a.Cursor)
	if err != nil || s == nil {
		return result, err
	}
	hops := 2
	if a.HopDepth != nil {
		hops = max(0, min(*a.HopDepth, 4))
	}
	limit, budget := a.limit(50, 1000), a.budget()
	names, err := s.expand(a.Query, Limits{Limit: a.VectorTopK}.limit(3, 20), hops, offset+limit+1)
	if err != nil {
		return result, err
	}
	for i := offset; i < len(names); i++ {
		node, err := s.ragNode(names[i])
		if err != nil {
			return result, err
		}
		if !budget.any {
			node.Text = cut(node.Text, budget.left*bytesPerToken/2)
		}
		if i == offset+limit || (!budget.take(node) && budget.any) {
			result.LeftOut = "more nodes: go on with next_cursor"
			result.NextCursor = fmt.Sprint(i)
			break
		}
		budget.any = true
		result.Nodes = append(result.Nodes, node)
	}
	result.NodeCount = len(result.Nodes)
	return result, nil
}

// expand gives up to limit names of nodes: the topK that fit the query best, and breadth first what follows them.
func (s *space) expand(query string, topK, hops, limit int) (names []string, err error) {
	found, _, err := s.corpus.Retrieve(query, basalt.RetrieveOptions{K: 4*topK + 16})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, passage := range found {
		name, isEntity := strings.CutPrefix(passage.Source, entityPrefix)
		if isEntity && !seen[name] && len(names) < topK {
			seen[name] = true
			names = append(names, name)
		}
	}
	for level := names; hops > 0 && len(level) > 0; hops-- {
		var next []string
		for _, name := range level {
			page, _, err := s.graph.Neighbors(name, basalt.EdgeFilter{AsOf: now()}, 200, "")
			if err != nil {
				return nil, err
			}
			for _, neighbor := range page {
				if !seen[neighbor.ID] && len(names)+len(next) < limit {
					seen[neighbor.ID] = true
					next = append(next, neighbor.ID)
				}
			}
		}
		names = append(names, next...)
		level = next
	}
	return names[:min(limit, len(names))], nil
}

func (s *space) ragNode(name string) (ragNode, error) {
	node := ragNode{NodeID: name, PropertiesJSON: "{}"}
	properties, found, err := s.texts.Get([]byte(entityPrefix + name))
	if err != nil {
		return node, err
	}
	if found {
		node.PropertiesJSON = string(properties)
	}
	entity, err := getEntity(s.graph, name)
	if entity != nil {
		node.Text = strings.Join(entity.Observations, "\n")
	}
	return node, err
}

type memoryRecallArguments struct {
	Key           string `json:"key,omitempty" jsonschema:"an exact key of kv_set"`
	SemanticQuery string `json:"semantic_query,omitempty" jsonschema:"what to look for, in any words, where there is no such key"`
	TopK          int    `json:"top_k,omitempty" jsonschema:"the greatest number of results, up to 100; 3 unless given"`
	Limits
}

type recalled struct {
	Key   string   `json:"key"`
	Value *string  `json:"value,omitempty"`
	Score *float64 `json:"score,omitempty"`
}

type memoryRecallResult struct {
	Type    string     `json:"type,omitempty" jsonschema:"exact_match or semantic_search"`
	Key     string     `json:"key,omitempty"`
	Value   *string    `json:"value,omitempty"`
	Query   string     `json:"query,omitempty"`
	Found   bool       `json:"found"`
	Reason  string     `json:"reason,omitempty"`
	Results []recalled `json:"results"`
	Rest
}

// memoryRecall gives the value of a key, or else finds texts.
func memoryRecall(_ *Memory, s *space, a memoryRecallArguments) (memoryRecallResult, error) {
	result := memoryRecallResult{Results: []recalled{}}
	if a.Key == "" && a.SemanticQuery == "" {
		return result, refuse("give key or semantic_query")
	}
	value, err := s.value(a.Key)
	if err != nil {
		return result, err
	}
	if value != nil {
		result.Type, result.Key, result.Value, result.Found = "exact_match", a.Key, value, true
		result.Results = []recalled{{Key: a.Key, Value: value}}
		return result, nil
	}
	if a.SemanticQuery == "" {
		result.Reason = "there is no such key"
		return result, nil
	}
	found, err := s.keysFound(a.SemanticQuery, Limits{Limit: a.TopK}.limit(3, 100), a.budget())
	result.Type, result.Query, result.Rest = "semantic_search", a.SemanticQuery, found.Rest
	for _, hit := range found.Results {
		result.Results = append(result.Results, recalled{Key: hit.Key, Score: &hit.Score})
	}
	result.Found = len(result.Results) > 0
	return result, err
}

func minkvTools() []tool {
	replaces := hints{destructive: true, idempotent: true}
	search := readTool("vector_search", "Search Texts", "Finds the texts of vector_insert by any words, best first.", vectorSearch)
	search.text = memberText("results")
	keyValue := kvTools()
	return []tool{
		search,
		{name: "vector_insert", title: "Insert Text", description: "Keeps a text for vector_search. The same key replaces it.",
			hints: replaces, input: schemaOf[vectorInsertArguments](), output: schemaOf[kvDone](), operation: changeOperation(vectorInsert)},
		{name: "graph_add_node", title: "Add Node", description: "Adds a node, or replaces its properties and text.",
			hints: replaces, input: schemaOf[nodeArguments](), output: schemaOf[nodeDone](), operation: changeOperation(addNode)},
		{name: "graph_add_edge", title: "Add Edge", description: "Adds a directed edge, or replaces its weight and properties.",
			hints: replaces, input: schemaOf[edgeArguments](), output: schemaOf[edgeDone](), operation: changeOperation(addEdge)},
		readTool("graph_rag_query", "Query Graph", "Finds nodes by their texts, and the nodes to which edges lead from them.", ragQuery),
		keyValue[0], keyValue[1], keyValue[2],
		readTool("memory_recall", "Recall Memory", "Gives the value of an exact key, or finds texts by any words.", memoryRecall),
	}
}
