def find_leaks(table, names, targets, train):
    return []
