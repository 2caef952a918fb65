import {
  type CapturedCluster,
  captureClusterFiles,
  captureRunningCluster,
  toSnapshotList,
} from '../../api/cluster/capture-cluster.js';
import { openCluster } from '../../api/deployment/cluster.js';
import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { clusterFlags, toClusterOptions } from '../deployment/flags.js';
import { writeTo } from '../mirror/options.js';
import { shellWord } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { createImageSet, imageSetInputFlags } from './image-set-output.js';
import { readSnapshotPlaces } from './snapshot-input.js';

/** `opmate cluster capture`. */
export const command = defineCommand({
  summary: 'write a snapshot of the operators of a cluster, without Secrets',
  description:
    'Reads the cluster of the kubeconfig, unless files, must-gather directories or archives are named.',
  arguments: [
    argument('[place...]', 'files, must-gather directories or archives, - for stdin (default: the cluster)'),
  ],
  flags: {
    ...clusterFlags,
    output: outputFormat(['json', 'yaml'], { default: 'yaml' }),
    to: text('file', 'write to this file (default: stdout)', { group: 'Output' }),
    imageSet: text('file', 'also write the image set of the installed operators', { group: 'Output' }),
    catalog: { ...imageSetInputFlags.catalog, needs: 'imageSet' as const },
    lock: { ...imageSetInputFlags.lock, needs: 'imageSet' as const },
  },
  examples: {
    'Write a snapshot of a must-gather': 'opmate cluster capture must-gather --to snapshot.yaml',
    'Write a snapshot, and the image set of its operators':
      'opmate cluster capture must-gather --to snapshot.yaml --image-set imageset.yaml',
    'Write a snapshot of several files':
      'opmate cluster capture objects.yaml subscription.yaml --to snapshot.yaml',
  },
  async runInSession({ context, args: [places], options, session }) {
    let captured: CapturedCluster;
    if (places.length > 0) {
      captured = await captureClusterFiles(await readSnapshotPlaces(places, context), session);
    } else {
      const cluster = openCluster(session, toClusterOptions(options));
      captured = await captureRunningCluster(cluster.kubectl);
    }
    session.logger.close();
    for (const finding of captured.findings) session.logger.report(finding);
    const snapshot = encodeData(toSnapshotList(captured), options.output);
    if (options.imageSet !== undefined) {
      const content = Buffer.from(encodeData(toSnapshotList(captured), 'json'));
      const imageSet = await createImageSet([{ name: 'the cluster', content }], options, session);
      await writeTo(options.imageSet, imageSet, context, session.logger, (file) => [
        `wrote the image set to ${file}`,
        `opmate mirror plan -c ${shellWord(file)} docker://REGISTRY`,
      ]);
    }
    await writeTo(options.to, snapshot, context, session.logger, (file) => [
      `wrote ${captured.objects.length} objects to ${file}`,
      `opmate cluster predict ${shellWord(file)} --catalog NAME=REF`,
    ]);
  },
});
