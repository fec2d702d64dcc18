-- The score of a posting p for its lexeme before weighting (BM25: Robertson and Zaragoza 2009, equation 3.15), with k1
-- = :saturation and usual.damping = k1 / (mean length + :prior). A memory counts as (length + prior) / (mean length +
-- prior) times as long as others, so that length matters among long texts and hardly among short ones. A lexeme near
-- the beginning counts up to one occurrence more, since texts begin with their subject.
            (:saturation::float8 + 1) / (1 + usual.damping * (p.length + :prior::float8)
                / (p.frequency + exp(greatest(p.first_position / -10.0::float8, -30))))
