const defaultMaxPerRegistry = 6;

/** Returns the maximum parallel requests per registry; the default allows for every image that is copied at a time. */
export function resolveMaxPerRegistry({
  maxPerRegistry,
  imagesAtOnce = 0,
}: {
  maxPerRegistry?: number | undefined;
  imagesAtOnce?: number | undefined;
}): number {
  return maxPerRegistry ?? Math.max(defaultMaxPerRegistry, imagesAtOnce);
}
