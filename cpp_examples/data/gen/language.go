// The invented language: its words, and the rules that give every phrase a label from 0
// (very bad) over 2 (neutral) to 4 (very good). Each rule looks at the labels of the two
// parts and at the function word between them, never at what stands outside the phrase.
package main

import "strings"

// A tree is a word with a label, or two trees under a label.
type tree struct {
	label       int
	word        string
	left, right *tree
}

func (t *tree) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t *tree) write(b *strings.Builder) {
	b.WriteByte('(')
	b.WriteByte(byte('0' + t.label))
	b.WriteByte(' ')
	if t.left == nil {
		b.WriteString(t.word)
	} else {
		t.left.write(b)
		b.WriteByte(' ')
		t.right.write(b)
	}
	b.WriteByte(')')
}

func leaf(label int, word string) *tree { return &tree{label: label, word: word} }

func join(label int, left, right *tree) *tree {
	return &tree{label: label, left: left, right: right}
}

// after is a function word in front of a phrase: the label is the rule's.
func after(word string, label int, phrase *tree) *tree {
	return join(label, leaf(2, word), phrase)
}

// The rules. Negation turns a judgement round and takes its edge off: what is not awful
// is good, what is not great is bad.
var negated = [5]int{3, 3, 2, 1, 1}
var stronger = [5]int{0, 0, 2, 4, 4}
var weaker = [5]int{1, 1, 2, 3, 3}

// both is the judgement of "a and b": agreement strengthens, disagreement cancels.
func both(a, b int) int { return min(max(a+b-2, 0), 4) }

var adjectives = [5][]string{
	{"awful", "dreadful", "unwatchable", "horrible", "atrocious", "appalling"},
	{"dull", "clumsy", "bland", "shallow", "tedious", "predictable", "lifeless", "silly"},
	{"long", "quiet", "short", "foreign", "modern", "loud"},
	{"good", "charming", "funny", "clever", "warm", "honest", "tender", "lively"},
	{"brilliant", "superb", "magnificent", "dazzling", "wonderful", "masterful"},
}

var qualities = [5][]string{
	1: {"clichés", "flaws", "gaps", "excesses"},
	3: {"wit", "charm", "heart", "energy", "depth"},
}

var (
	articles     = []string{"the", "this", "its", "their"}
	things       = []string{"film", "plot", "cast", "script", "music", "story", "ending", "dialogue", "camera", "hero", "villain", "sequel"}
	copulas      = []string{"is", "seems", "feels", "looks"}
	negations    = []string{"not", "never", "hardly"}
	intensifiers = []string{"very", "truly", "utterly"}
	downtoners   = []string{"slightly", "fairly", "somewhat"}
	owning       = []string{"has", "offers"}
	lacking      = []string{"lacks", "avoids"}
	doubting     = []string{"doubt", "deny"}
	believing    = []string{"think", "believe"}
	people       = []string{"i", "critics", "we"}
)

type generator struct{ random splitmix }

func (g *generator) of(words []string) string { return words[g.random.below(len(words))] }

// chance is true p times in a hundred.
func (g *generator) chance(p int) bool { return g.random.below(100) < p }

// review is a whole sentence.
func (g *generator) review() *tree {
	switch p := g.random.below(100); {
	case p < 26:
		return g.clause()
	case p < 44: // what follows "but" counts
		return g.contrast(g.clause(), g.clause())
	case p < 58: // and what "although" leads in does not
		a, b := g.clause(), g.clause()
		return join(b.label, after("although", a.label, a), after(",", b.label, b))
	case p < 72:
		a, b := g.clause(), g.clause()
		return join(both(a.label, b.label), a, after("and", b.label, b))
	case p < 90: // a doubt about the whole of what is said
		said := g.clause()
		if g.chance(45) {
			said = g.contrast(said, g.clause())
		}
		return g.opinion(said, g.chance(75))
	default: // a doubt about its first half only
		return g.contrast(g.opinion(g.clause(), true), g.clause())
	}
}

// contrast is "a but b".
func (g *generator) contrast(a, b *tree) *tree {
	return join(b.label, a, after("but", b.label, b))
}

// opinion is "i think that ..." or "i doubt that ...".
func (g *generator) opinion(said *tree, doubt bool) *tree {
	verb, label := g.of(believing), said.label
	if doubt {
		verb, label = g.of(doubting), negated[said.label]
	}
	return after(g.of(people), label, after(verb, label, after("that", said.label, said)))
}

// clause is a subject with a judgement: "the plot is not very funny", "its cast lacks wit".
func (g *generator) clause() *tree {
	subject := after(g.of(articles), 2, leaf(2, g.of(things)))
	if g.chance(22) {
		label := 1 + 2*g.random.below(2)
		object := leaf(label, g.of(qualities[label]))
		verb := g.of(owning)
		if g.chance(50) {
			verb, label = g.of(lacking), negated[label]
		}
		return join(label, subject, after(verb, label, object))
	}
	said := g.judgement()
	return join(said.label, subject, after(g.of(copulas), said.label, said))
}

// judgement is an adjective and what is done to it.
func (g *generator) judgement() *tree {
	switch p := g.random.below(100); {
	case p < 34:
		return g.degree()
	case p < 70:
		said := g.degree()
		if g.chance(35) { // "not" over a pair of adjectives
			said = g.pair(said, g.adjective())
		}
		return after(g.of(negations), negated[said.label], said)
	default: // "not" over the first of a pair only
		first := g.adjective()
		if g.chance(50) {
			first = after(g.of(negations), negated[first.label], first)
		}
		return g.pair(first, g.degree())
	}
}

func (g *generator) pair(a, b *tree) *tree {
	if g.chance(50) {
		return g.contrast(a, b)
	}
	return join(both(a.label, b.label), a, after("and", b.label, b))
}

// degree is an adjective, perhaps with an adverb.
func (g *generator) degree() *tree {
	a := g.adjective()
	switch p := g.random.below(100); {
	case p < 18:
		return after(g.of(intensifiers), stronger[a.label], a)
	case p < 32:
		return after(g.of(downtoners), weaker[a.label], a)
	}
	return a
}

// adjective is neutral now and then only.
func (g *generator) adjective() *tree {
	label := [...]int{0, 0, 0, 1, 1, 1, 2, 3, 3, 3, 4, 4, 4}[g.random.below(13)]
	return leaf(label, g.of(adjectives[label]))
}

// splitmix is a small random generator of our own, so that the files are the same with
// every version of Go.
type splitmix uint64

func (s *splitmix) below(n int) int {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) >> 32 * uint64(n) >> 32)
}
