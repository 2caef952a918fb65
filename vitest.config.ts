import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// What was built runs as users have it.
const server = { deps: { external: [/\/dist\//] } };
const setupFiles = ['test/support/hold-native-objects.ts'];
// Files of a worker share its modules: loading them again for each took half the time. A worker belongs to one project, so
// projects run one after the other.
const isolate = false;
// Ends tests that hang: nothing that a busy machine with a slow disk needs longer for.
const timeouts = { testTimeout: 180_000, hookTimeout: 120_000 };

export default defineConfig({
  test: {
    // Workers wait a quarter of their time: for processes and servers, and for delays of retries.
    maxWorkers: availableParallelism() + 1,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          ...timeouts,
          setupFiles,
          isolate,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          ...timeouts,
          setupFiles,
          isolate,
          server,
        },
      },
      { test: { name: 'faults', include: ['test/faults/**/*.test.ts'], testTimeout: 3_600_000 } },
    ],
  },
});
