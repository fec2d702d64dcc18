-- The score of a posting p for its lexeme before weighting (BM25: Robertson and Zaragoza 2009, equation 3.15):
-- :saturation is k1, :flat k1 * (1 - b), and :growth k1 * b / mean length.
            (:saturation::float8 + 1) * p.frequency / (p.frequency + :flat::float8 + :growth::float8 * p.length)
