/** A breaking change that is accepted for some time; fields that are missing match any value. */
export interface AllowedChange {
  code: string;
  package: string;
  channel?: string | undefined;
  bundle?: string | undefined;
  reason: string;
  /** Date or time after which it is an error again. */
  expires: string;
}

/** Values that gates compare with; users may replace them in a file. */
export interface GateProfile {
  /** Base images of fragments, without tag. */
  baseImages: readonly string[];
  /** Registries of bundle images. */
  registries: readonly string[];
  /** Parts of the names of channels from which entries may be removed. */
  prunableChannels: readonly string[];
  /** Subscriptions whose bundles are scanned. */
  scannedSubscriptions: readonly string[];
  /** Bundles of subscriptions created before this time are not scanned. */
  scannedFrom: string;
  /** Accepted breaking changes. */
  allowed: readonly AllowedChange[];
}

const baseImages = ['openshift4', 'openshift5'].flatMap((group) => [
  `registry.redhat.io/${group}/ose-operator-registry`,
  `registry.redhat.io/${group}/ose-operator-registry-rhel9`,
]);

/** Profile of the tasks of konflux-ci/konflux-operator-tasks. */
export const defaultGateProfile: GateProfile = {
  baseImages: [
    ...baseImages,
    'brew.registry.redhat.io/rh-osbs/openshift-ose-operator-registry-rhel9',
    'registry-proxy.engineering.redhat.com/rh-osbs/openshift-ose-operator-registry-rhel9',
  ],
  registries: ['registry.redhat.io', 'registry.stage.redhat.io'],
  prunableChannels: ['dev-preview', 'pre-ga', 'candidate'],
  scannedSubscriptions: [
    'OpenShift Kubernetes Engine',
    'OpenShift Container Platform',
    'OpenShift Platform Plus',
  ],
  scannedFrom: '2025-01-31T00:00:00Z',
  allowed: [],
};

/** Reports whether entries may be removed from a channel. */
export function isPrunable(channel: string, { prunableChannels }: GateProfile): boolean {
  return prunableChannels.some((part) => channel.includes(part));
}
