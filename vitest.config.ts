import { defineConfig } from 'vitest/config';

// What was built runs as users have it.
const server = { deps: { external: [/\/dist\//] } };
const setupFiles = ['test/support/hold-native-objects.ts'];

export default defineConfig({
  test: {
    // Most of the time goes to processes that tests start: one worker would leave a core idle.
    maxWorkers: '100%',
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          setupFiles,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 120_000,
          setupFiles,
          server,
        },
      },
      { test: { name: 'faults', include: ['test/faults/**/*.test.ts'], testTimeout: 3_600_000 } },
    ],
  },
});
