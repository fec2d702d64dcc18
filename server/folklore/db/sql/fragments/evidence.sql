-- The score of a posting p for its lexeme before weighting (BM25: Robertson and Zaragoza 2009, equation 3.15), with k1
-- = :saturation and usual.damping = k1 / sqrt(mean length ^ 2 + :prior ^ 2). Lengths compare as sqrt(length ^ 2 + prior
-- ^ 2): a text of fewer lexemes than the prior counts nearly as one of so many, since a title is short because the rest
-- is missing. A lexeme near the beginning counts up to one occurrence more, since texts begin with their subject.
            (:saturation::float8 + 1) / (1 + usual.damping * sqrt(p.length * p.length::float8 + :prior::float8 * :prior::float8)
                / (p.frequency + exp(greatest(p.first_position / -10.0::float8, -30))))
