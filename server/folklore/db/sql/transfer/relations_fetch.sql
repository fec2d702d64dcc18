fetch forward 200 from folklore_relations
