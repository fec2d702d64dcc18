-- The memories o, each as it is now.
    select o.* from memories o
