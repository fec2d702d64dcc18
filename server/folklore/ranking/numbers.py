"""The numbers of a recall that are set by hand, each with its reason; all others are trained (weights.json)."""

# BM25's k1 and b, as in Robertson and Zaragoza 2009.
K1 = 1.2
B = 0.75
# k of reciprocal rank fusion, as in Cormack and others 2009.
RRF_K = 60.0
# Candidates of a branch: three times the results wanted, and at least so many, since more changed no set by a point.
FETCHED = 3.0
LEAST_FETCHED = 30
# Best candidates whose neighbours in the session are read: with them the pool has about a hundred.
SURROUNDED = 20
# Rank at which a reciprocal rank is a half: differences among the first ten count.
RANK = 10.0
# Nearest other candidates whose cosines scale a cosine, as in Conneau and others 2018; 5 and 30 rank alike.
NEAREST = 10
# Lexemes from which a text takes less from its neighbours: it has words of its own.
LONG = 60.0
# Share of what a text that asks takes from its neighbours: it is seldom an answer.
ASKING = 0.6
# Share of a word that only a neighbour holds: a reply has few words of its question.
NEIGHBOUR = 0.9
# Share of the vectors of direct neighbours that is added to a memory's.
BESIDE = 0.5
# Weight of a word that is never held, in letters, added to each question: one of few words would soon be covered whole.
PADDING = 5.0
# Weight of a date in a question, in letters: that of a long word and a half.
DATE = 7.5
# Two texts are on the same subject from this cosine on, or this overlap of words if both are short; decisions and their
# reversals lie above, different facts of one subject below. A model that reads in context brings texts of one project
# nearer together: its cosine lets the same share of pairs on different subjects pass, 4 of 1,000 (MiniLM).
SAME_SUBJECT = 0.66
SAME_SUBJECT_IN_CONTEXT = 0.72
SAME_WORDS = 0.5
# Share of the question's words that the older one holds which the newer one must hold too: two services have the same
# port, but the question names one.
COVERED = 0.5
# Cosine from which two texts begin to be redundant, and the range to full redundancy: light rewordings lie at .94 to
# .99, different facts below.
SIMILAR = 0.95
RANGE = 0.03
# Greatest share of reflections in an answer: they speak about memories, and must not displace them.
REFLECTIONS = 0.3
# Weak results of an answer that has no better one: what is typed as a task shares few words with its memories.
MOST_WEAK = 5
# Odds of a result from elsewhere, in those of the best of the project, and its least confidence: among 40 other
# namespaces the project's questions then find their answers as if it were alone.
CLEARLY = 2.0
CLEAR = 0.2
# What a relation of strength 1 and of weight 1 counts, in reciprocal ranks: with the usual weight ½ it lets a memory
# that shares no word come after those that answer, and before all others.
RELATED = 4.0
# Share of the candidates with cues from which on a score is that among memories with cues alone; of fewer it lies
# between both. Where half of a store has cues, a third of the candidates has.
MANY_CUED = 0.4
# Letters of the question's words that cues hold which count a half of any number: those of four long words.
ENOUGH = 24.0
# Lead of a result without others: as over a text that shares no word with the question.
ALONE = 4.0

# Words of cues against words of the content: they are few and chosen, so that one counts like one.
CUE_WORDS = 1.0
