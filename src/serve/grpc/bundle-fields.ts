/** Field numbers of `api.Bundle`. */
export const bundleFields = {
  csvName: 1,
  packageName: 2,
  channelName: 3,
  csvJson: 4,
  object: 5,
  bundlePath: 6,
  providedApis: 7,
  requiredApis: 8,
  version: 9,
  skipRange: 10,
  dependencies: 11,
  properties: 12,
  replaces: 13,
  skips: 14,
  deprecation: 15,
} as const;
