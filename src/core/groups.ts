/** Returns the value of a key, after setting it to the result of `make` if it is missing. */
export function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/** Appends an item to the list of a key. */
export function pushTo<K, T>(lists: Map<K, T[]>, key: K, item: T): void {
  getOrAdd(lists, key, () => []).push(item);
}

/** Groups items by key, keys and items in order of appearance. */
export function groupBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) pushTo(groups, keyOf(item), item);
  return groups;
}

/** Returns items by key, the first of duplicates. */
export function firstBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T> {
  const first = new Map<K, T>();
  for (const item of items) {
    const key = keyOf(item);
    if (!first.has(key)) first.set(key, item);
  }
  return first;
}
