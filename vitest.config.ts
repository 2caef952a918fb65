import { availableParallelism } from 'node:os';
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// What was built runs as users have it.
const server = { deps: { external: [/\/dist\//] } };
// Files of a worker share its modules: loading them again for each took half the time.
const isolate = false;
const setupFiles = ['test/support/equality.ts'];
// Ends tests that hang: nothing that a busy machine with a slow disk needs longer for.
const timeouts = {
  testTimeout: 180_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 60_000 } },
};

/** Files that take longest, which begin first: vitest knows how long files take from earlier runs only. */
const longFiles = [
  ...['view', 'docs-examples', 'examples', 'endings', 'mirror-source-faults'],
  ...['mirror-delete', 'registry-atomicity', 'archive', 'serve-catalogs', 'docs-ci', 'catalog-api'],
  ...['transfer-faults', 'apply', 'damaged-layers', 'conventions', 'digest-tags', 'edits.property'],
];

/** Long files first, end-to-end tests before unit tests: a worker belongs to one project, and ends with its last file. */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const index = longFiles.indexOf(path.basename(moduleId, '.test.ts'));
      const place = index === -1 ? longFiles.length : index;
      return project.name === 'unit' ? longFiles.length + 1 + place : place;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongFilesFirst },
    // Workers wait much of their time: for processes and servers, and for delays of retries.
    maxWorkers: availableParallelism() + 2,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          ...timeouts,
          isolate,
          setupFiles,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/e2e/global-setup.ts'],
          ...timeouts,
          isolate,
          setupFiles,
          server,
        },
      },
      {
        test: {
          name: 'artifacts',
          include: ['test/artifacts/**/*.test.ts'],
          ...timeouts,
          isolate,
          setupFiles,
          server,
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts'],
          globalSetup: ['test/cluster/global-setup.ts'],
          ...timeouts,
          isolate,
          setupFiles,
          server,
        },
      },
      { test: { name: 'faults', include: ['test/faults/**/*.test.ts'], setupFiles, testTimeout: 3_600_000 } },
    ],
  },
});
