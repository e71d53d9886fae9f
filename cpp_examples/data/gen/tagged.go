// The tagged sentences: invented news in which a name's tag follows from what stands before
// it or after it ("in Dorin", "Dorin resigned"), or else from its ending.
package main

import "strings"

type tagged struct{ words []string }

func (t *tagged) plain(text string) {
	for _, w := range strings.Fields(text) {
		t.words = append(t.words, w+"|O")
	}
}

func (t *tagged) name(tag string, words ...string) {
	for _, w := range words {
		t.words = append(t.words, w+"|"+tag)
	}
}

var (
	syllables = []string{"ba", "del", "dor", "fen", "gar", "ha", "in", "ka", "lo", "mar", "ne", "or", "pel", "ri", "sul", "ta", "ul", "ven", "wi", "zo"}
	endings   = map[string][]string{
		"LOC": {"burg", "ville", "stad", "ford"},
		"PER": {"son", "ski", "ez", "man"},
		"ORG": {"tech", "corp", "bank", "air"},
	}
	firstNames = []string{"Anna", "Boris", "Clara", "David", "Elena", "Felix", "Greta", "Hugo"}
	deeds      = []string{"resigned", "spoke", "smiled", "agreed", "objected", "waited"}
	moves      = []string{"arrived in", "travelled to", "moved from", "died in", "lived near"}
	dealings   = []string{"bought", "sued", "left", "joined", "praised"}
	figures    = []string{"shares fell", "shares rose", "profits doubled", "hired workers", "closed a factory"}
	days       = []string{"on monday", "on friday", "last week", "this year", "again", "in spring"}
	rumours    = []string{"little is known of", "the papers write about", "everybody talks about"}
	subjects   = []string{"the minister", "a judge", "the mayor", "a driver", "the coach"}
)

// made is a new name: of a hundred, about so many end as their kind does, the rest anyhow.
func (g *generator) made(tag string, usual int) string {
	name := g.of(syllables)
	if g.chance(40) {
		name += g.of(syllables)
	}
	if g.chance(usual) {
		name += g.of(endings[tag])
	} else {
		name += g.of(syllables)
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

func (g *generator) person(t *tagged) {
	if g.chance(50) {
		t.name("PER", g.of(firstNames))
	}
	t.name("PER", g.made("PER", 70))
}

// news is a whole sentence.
func (g *generator) news() string {
	t := &tagged{}
	switch g.random.below(7) {
	case 0:
		g.person(t)
		t.plain(g.of(deeds))
	case 1:
		g.person(t)
		t.plain(g.of(moves))
		t.name("LOC", g.made("LOC", 70))
	case 2:
		t.plain(g.of(subjects) + " " + g.of(moves))
		t.name("LOC", g.made("LOC", 70))
	case 3:
		t.name("ORG", g.made("ORG", 70))
		t.plain(g.of(figures))
	case 4:
		g.person(t)
		t.plain(g.of(dealings))
		t.name("ORG", g.made("ORG", 70))
	case 5: // only its ending tells what it is
		t.plain(g.of(rumours))
		tag := []string{"LOC", "PER", "ORG"}[g.random.below(3)]
		t.name(tag, g.made(tag, 100))
	default: // a company that is named like a place
		t.name("ORG", "Bank", "of")
		t.name("ORG", g.made("LOC", 70))
		t.plain(g.of(figures))
	}
	if g.chance(60) {
		t.plain(g.of(days))
	}
	t.plain(".")
	return strings.Join(t.words, " ")
}
