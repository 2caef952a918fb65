import {
  listChannelReleases,
  listReleaseChannels,
  listReleaseVersions,
} from '../../api/listing/list-releases.js';
import { formatOpenShift, parseOpenShiftVersion } from '../../core/openshift-version.js';
import { defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, grouped, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { encodeData } from '../reports/encode-data.js';
import { printable } from '../printable.js';
import { type CommandSession, writePieces } from '../session.js';
import { mirrorFlags } from './flags.js';
import { readMirrorOptions } from './oc-mirror-flags.js';

const flags = {
  ...grouped('Selection', {
    channel: text('name', 'list the releases of this channel, e.g. stable-4.18', {
      excludes: ['version', 'channels'],
    }),
    version: text('version', 'minor version, e.g. 4.18; lists its stable channel'),
    channels: flag('with --version: list the channels of this version', { needs: 'version' }),
    filterByArchs: text('archs', 'comma-separated architectures: amd64, arm64, ppc64le, s390x, multi', {
      default: 'amd64',
    }),
  }),
  output: outputFormat(['text', 'json'], { default: 'text' }),
};

/** `opmate mirror list releases`. */
export const command = defineCommand({
  summary: 'list the versions, channels or releases of OpenShift',
  tool: 'oc-mirror',
  inherits: mirrorFlags,
  flags,
  examples: {
    'List the minor versions': 'opmate mirror list releases',
    'List the releases of a channel': 'opmate mirror list releases --channel stable-4.18',
    'List the channels of a version': 'opmate mirror list releases --channels --version 4.18',
  },
  readOptions: ({ context, options }) => readMirrorOptions(options, [], context),
  async runInSession({ context, options, session }) {
    await writePieces(context, session, await listText(options, session));
  },
});

type ListOptions = FlagValues<typeof flags>;

async function listText(
  { channel, channels, version: versionText, filterByArchs, output }: ListOptions,
  session: CommandSession,
): Promise<string> {
  const version = versionText && formatOpenShift(parseOpenShiftVersion(versionText));
  const architectures = filterByArchs.split(',').map((name) => name.trim());
  const isJson = output === 'json';
  if (channels && version !== undefined) {
    const names = await listReleaseChannels(version, architectures, session);
    if (isJson) return encodeData({ version, channels: names }, 'json');
    return `Listing channels for version ${version}:\n\n${formatLines(names)}`;
  }
  const wanted = channel ?? (version === undefined ? undefined : `stable-${version}`);
  if (wanted === undefined) {
    const versions = await listReleaseVersions(session);
    if (isJson) return encodeData({ versions }, 'json');
    const heading = 'Available OpenShift Container Platform release versions:';
    return `${heading}\n${formatLines(versions.map((name) => `  ${name}`))}`;
  }
  const listed = await listChannelReleases(wanted, architectures, session);
  if (isJson) return encodeData({ channels: listed }, 'json');
  return listed
    .map(
      (releases) =>
        `Channel: ${releases.channel}\nArchitecture: ${releases.architecture}\n${formatLines(releases.versions)}`,
    )
    .join('');
}

function formatLines(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join('');
}
