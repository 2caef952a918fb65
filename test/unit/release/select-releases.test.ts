import { describe, expect, it } from 'vitest';
import {
  type ChannelRequest,
  type ReleaseType,
  selectReleases,
} from '../../../src/release/select-releases.js';
import { parseUpdateGraph } from '../../../src/release/update-graph.js';
import { failureOf } from '../../support/connect.js';
import { graphText } from '../../support/releases.js';

/** Graphs by channel: versions, updates, and conditional updates. */
const graphs: Record<string, string> = {
  'stable-4.1': graphText(
    ['4.0.9', '4.1.0', '4.1.1', '4.1.2', '4.1.3'],
    [
      ['4.0.9', '4.1.0'],
      ['4.1.0', '4.1.1'],
      ['4.1.0', '4.1.2'],
      ['4.1.1', '4.1.3'],
      ['4.1.2', '4.1.3'],
    ],
  ),
  'stable-4.2': graphText(
    ['4.1.3', '4.2.0', '4.2.1', '4.2.2'],
    [
      ['4.1.3', '4.2.0'],
      ['4.2.0', '4.2.2'],
    ],
  ),
  'stable-4.3': graphText(['4.2.2', '4.3.0', '4.3.1'], [['4.2.2', '4.3.0']], {
    conditional: [{ from: '4.3.0', to: '4.3.1', risk: 'LosesPods' }],
  }),
  'stable-4.21': graphText(['4.21.1', '4.22.3'], [['4.21.1', '4.22.3']]),
  'stable-4.22': graphText(['4.22.3', '4.22.4'], [['4.22.3', '4.22.4']]),
  'stable-4.23': graphText(['4.23.1']),
  'stable-5.0': graphText(
    ['4.22.4', '5.0.0', '5.0.1'],
    [
      ['4.22.4', '5.0.0'],
      ['5.0.0', '5.0.1'],
    ],
  ),
  'stable-5.1': graphText(
    ['4.23.1', '5.0.1', '5.1.0'],
    [
      ['4.23.1', '5.1.0'],
      ['5.0.1', '5.1.0'],
    ],
  ),
  'stable-6.0': graphText(['6.0.0']),
  'fast-4.3': graphText(['4.3.0', '4.3.1'], [['4.3.0', '4.3.1']]),
  'lonely-4.2': graphText(['4.2.5']),
  'dev-preview': graphText(['4.2.5']),
};

function channel(name: string, changes: Partial<ChannelRequest> = {}): ChannelRequest {
  return {
    ...{ name, type: 'ocp', minVersion: undefined, maxVersion: undefined },
    ...{ full: false, shortestPath: false },
    ...changes,
  };
}

async function select(channels: ChannelRequest[], { avoidRisks = false } = {}) {
  const asked: string[] = [];
  const readGraph = async (_type: ReleaseType, name: string) => {
    asked.push(name);
    return parseUpdateGraph(graphs[name] ?? graphText([]), `channel ${name} (amd64)`);
  };
  const { releases, warnings } = await selectReleases(channels, 'amd64', { avoidRisks, readGraph });
  return { versions: releases.map(({ node }) => node.version), warnings, asked, releases };
}

describe('release/select-releases', () => {
  it.each([
    [{}, ['4.1.3']],
    [{ full: true }, ['4.0.9', '4.1.0', '4.1.1', '4.1.2', '4.1.3']],
    [{ minVersion: '4.1.1' }, ['4.1.1', '4.1.2', '4.1.3']],
    [{ maxVersion: '4.1.1' }, ['4.0.9', '4.1.0', '4.1.1']],
    [{ minVersion: '4.1.1', maxVersion: '4.1.2', full: true }, ['4.1.1', '4.1.2']],
    [{ minVersion: '4.0.10', maxVersion: '4.1.1' }, ['4.1.0', '4.1.1']],
    [{ shortestPath: true }, ['4.1.3']],
    [{ shortestPath: true, full: true }, ['4.0.9', '4.1.0', '4.1.2', '4.1.3']],
    [{ shortestPath: true, minVersion: '4.1.0' }, ['4.1.0', '4.1.2', '4.1.3']],
  ])('selects of one channel with %o', async (changes, versions) => {
    expect((await select([channel('stable-4.1', changes)])).versions).toEqual(versions);
  });

  it('connects several channels, minor version by minor version, and reads each graph once', async () => {
    const { versions, asked, warnings } = await select([
      channel('stable-4.1', { minVersion: '4.1.1', maxVersion: '4.1.1' }),
      channel('stable-4.3', { minVersion: '4.3.0', maxVersion: '4.3.0' }),
    ]);
    expect(versions).toEqual(['4.1.1', '4.1.3', '4.2.0', '4.2.2', '4.3.0']);
    expect(asked.sort()).toEqual(['stable-4.1', 'stable-4.2', 'stable-4.3']);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['4.21', '4.21.1', '5.0', ['4.21.1', '4.22.3', '4.22.4', '5.0.0', '5.0.1']],
    ['4.22', '4.22.3', '5.1', ['4.22.3', '4.22.4', '5.0.0', '5.0.1', '5.1.0']],
    ['4.23', '4.23.1', '5.1', ['4.23.1', '5.1.0']],
    ['5.0', '5.0.0', '5.1', ['5.0.0', '5.0.1', '5.1.0']],
  ])('connects channels from %s (%s) across major versions to %s', async (from, minVersion, to, expected) => {
    const { versions, warnings } = await select([
      channel(`stable-${from}`, { minVersion, maxVersion: minVersion }),
      channel(`stable-${to}`),
    ]);
    expect({ versions, warnings }).toEqual({ versions: expected, warnings: [] });
  });

  it('warns of a step between major versions that is unknown', async () => {
    const { versions, warnings } = await select([channel('stable-5.1'), channel('stable-6.0')]);
    expect(versions).toEqual(['5.1.0', '6.0.0']);
    expect(warnings).toEqual([
      'update path from stable-5.1 to stable-6.0: not computed, the version after 5.1 is unknown',
    ]);
  });

  it('connects two channels of the same minor version', async () => {
    const { versions } = await select([
      channel('stable-4.3', { minVersion: '4.3.0', maxVersion: '4.3.0' }),
      channel('fast-4.3'),
    ]);
    expect(versions).toEqual(['4.3.0', '4.3.1']);
  });

  it('warns if no update path leads to the next channel, and selects both ends', async () => {
    const { versions, warnings } = await select([
      channel('stable-4.1', { minVersion: '4.1.2', maxVersion: '4.1.2' }),
      channel('lonely-4.2'),
    ]);
    expect(versions).toEqual(['4.1.2', '4.1.3', '4.2.5']);
    expect(warnings).toEqual([
      'update path from stable-4.1 to lonely-4.2: 4.1.3 is not in channel lonely-4.2, so it has no update path',
    ]);
    const unnumbered = await select([channel('stable-4.1'), channel('dev-preview')]);
    expect(unnumbered.versions).toEqual(['4.1.3', '4.2.5']);
    expect(unnumbered.warnings.join()).toContain('do not end with -X.Y');
  });

  it('uses a conditional update if no other exists, with its risk', async () => {
    const path = [channel('stable-4.3', { minVersion: '4.2.2', shortestPath: true })];
    const { versions, warnings } = await select(path);
    expect(versions).toEqual(['4.2.2', '4.3.0', '4.3.1']);
    expect(warnings).toEqual([
      'channel stable-4.3 (amd64): the only way from 4.3.0 to 4.3.1 is a conditional update (LosesPods, https://example.com/LosesPods)',
    ]);
    expect(await failureOf(select(path, { avoidRisks: true }))).toMatchObject({
      code: 'INVALID',
      message: warnings[0],
    });
  });

  it.each([
    [
      channel('stable-9.9'),
      'NOT_FOUND',
      'channel stable-9.9 (amd64): no releases',
      'api.listReleaseChannels',
    ],
    [
      channel('stable-4.1', { minVersion: '4.1.1', maxVersion: '4.1.30', shortestPath: true }),
      'NOT_FOUND',
      'version "4.1.30" is not in the channel',
      '4.1.3',
    ],
    [channel('stable-4.1', { minVersion: '4.2.0' }), 'NOT_FOUND', 'no release from version 4.2.0', '4.1.3'],
    [
      channel('stable-4.2', { minVersion: '4.2.0', maxVersion: '4.2.1', shortestPath: true }),
      'INVALID',
      'no update path from 4.2.0 to 4.2.1',
      '4.2.0 has no updates',
    ],
    [
      channel('stable-4.2', { minVersion: '4.1.3', maxVersion: '4.2.1', shortestPath: true }),
      'INVALID',
      'no update path from 4.1.3 to 4.2.1',
      'the newest reachable version is 4.2.0',
    ],
  ])('refuses %o', async (request, code, problem, hint) => {
    const fault = await failureOf(select([request]));
    expect(fault).toMatchObject({ code });
    expect(fault.message).toContain(problem);
    expect(fault.hint).toContain(hint);
  });

  it('reports the faults of several channels together', async () => {
    const fault = await failureOf(select([channel('stable-9.9'), channel('stable-8.8')]));
    expect(fault.message).toMatch(/stable-9\.9.*stable-8\.8/);
  });
});
