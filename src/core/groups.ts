/** Returns what a map has under a key; what `make` returns becomes that where it has nothing. */
export function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/** Puts an item behind those that a map has under a key. */
export function pushTo<K, T>(lists: Map<K, T[]>, key: K, item: T): void {
  getOrAdd(lists, key, () => []).push(item);
}

/** Items by their key, keys and items in the order in which they come. */
export function groupBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) pushTo(groups, keyOf(item), item);
  return groups;
}
