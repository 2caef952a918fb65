import {
  type Fields,
  type Of,
  fields,
  structList,
  optionalStruct,
  pointerTo,
  stringMap,
  strings,
  struct,
} from './struct.js';
import { intOrString, labelSelector, objectMeta, quantities, quantity } from './meta-types.js';

/** Types of Deployments and their pods. (Source: Kubernetes 1.35, api/apps/v1 and api/core/v1.) */

const optionalBool = pointerTo('bool');
const optionalInt32 = pointerTo('int32');
const optionalInt64 = pointerTo('int64');
const optionalText = pointerTo('string');

const localReference = { 'name?': 'string' } as const;
const localObject = struct(localReference);
const keyToPath = structList({ key: 'string', path: 'string', 'mode?': optionalInt32 });

const fieldSelector = struct({ 'apiVersion?': 'string', fieldPath: 'string' });
const resourceFieldSelector = struct({
  ...fields('string', 'containerName?', 'resource'),
  'divisor?': quantity,
});
const keySelector = struct({ ...localReference, key: 'string', 'optional?': optionalBool });

const env = structList({
  ...fields('string', 'name', 'value?'),
  'valueFrom?': optionalStruct({
    'fieldRef?': pointerTo(fieldSelector),
    'resourceFieldRef?': pointerTo(resourceFieldSelector),
    ...fields(pointerTo(keySelector), 'configMapKeyRef?', 'secretKeyRef?'),
    'fileKeyRef?': pointerTo(
      struct({ volumeName: 'string', path: 'string', key: 'string', 'optional?': optionalBool }),
    ),
  }),
});

const optionalSource = optionalStruct({ ...localReference, 'optional?': optionalBool });
const envFrom = structList({
  'prefix?': 'string',
  ...fields(optionalSource, 'configMapRef?', 'secretRef?'),
});

const resources = struct({
  ...fields(quantities, 'limits?', 'requests?'),
  'claims?': structList({ name: 'string', 'request?': 'string' }),
});

const httpGet = struct({
  'path?': 'string',
  port: intOrString,
  ...fields('string', 'host?', 'scheme?'),
  'httpHeaders?': structList({ name: 'string', value: 'string' }),
});
const tcpSocket = struct({ port: intOrString, 'host?': 'string' });
const exec = struct({ 'command?': strings });

const probe = optionalStruct({
  'exec?': pointerTo(exec),
  'httpGet?': pointerTo(httpGet),
  'tcpSocket?': pointerTo(tcpSocket),
  'grpc?': pointerTo(struct({ port: 'int32', service: optionalText })),
  ...fields('int32', 'initialDelaySeconds?', 'timeoutSeconds?', 'periodSeconds?', 'successThreshold?'),
  'failureThreshold?': 'int32',
  'terminationGracePeriodSeconds?': optionalInt64,
});

const lifecycleHandler = optionalStruct({
  'exec?': pointerTo(exec),
  'httpGet?': pointerTo(httpGet),
  'tcpSocket?': pointerTo(tcpSocket),
  'sleep?': pointerTo(struct({ seconds: 'int64' })),
});

const seLinuxOptions = optionalStruct(fields('string', 'user?', 'role?', 'type?', 'level?'));
const windowsOptions = optionalStruct({
  ...fields(optionalText, 'gmsaCredentialSpecName?', 'gmsaCredentialSpec?', 'runAsUserName?'),
  'hostProcess?': optionalBool,
});
const profile = optionalStruct({ type: 'string', 'localhostProfile?': optionalText });

const securityContext = optionalStruct({
  'capabilities?': pointerTo(struct({ 'add?': strings, 'drop?': strings })),
  'privileged?': optionalBool,
  'seLinuxOptions?': seLinuxOptions,
  'windowsOptions?': windowsOptions,
  ...fields(optionalInt64, 'runAsUser?', 'runAsGroup?'),
  ...fields(optionalBool, 'runAsNonRoot?', 'readOnlyRootFilesystem?', 'allowPrivilegeEscalation?'),
  'procMount?': optionalText,
  ...fields(profile, 'seccompProfile?', 'appArmorProfile?'),
});

const volumeMounts = structList({
  name: 'string',
  'readOnly?': 'bool',
  'recursiveReadOnly?': optionalText,
  ...fields('string', 'mountPath', 'subPath?'),
  'mountPropagation?': optionalText,
  'subPathExpr?': 'string',
});

const containerFields = {
  ...fields('string', 'name', 'image?'),
  ...fields(strings, 'command?', 'args?'),
  'workingDir?': 'string',
  'ports?': structList({
    'name?': 'string',
    ...fields('int32', 'hostPort?', 'containerPort'),
    ...fields('string', 'protocol?', 'hostIP?'),
  }),
  'envFrom?': envFrom,
  'env?': env,
  'resources?': resources,
  'resizePolicy?': structList({ resourceName: 'string', restartPolicy: 'string' }),
  'restartPolicy?': optionalText,
  'restartPolicyRules?': structList({
    action: 'string',
    'exitCodes?': optionalStruct({ operator: 'string', 'values?': { list: 'int32' } }),
  }),
  'volumeMounts?': volumeMounts,
  'volumeDevices?': structList({ name: 'string', devicePath: 'string' }),
  ...fields(probe, 'livenessProbe?', 'readinessProbe?', 'startupProbe?'),
  'lifecycle?': optionalStruct({
    ...fields(lifecycleHandler, 'postStart?', 'preStop?'),
    'stopSignal?': optionalText,
  }),
  ...fields('string', 'terminationMessagePath?', 'terminationMessagePolicy?', 'imagePullPolicy?'),
  'securityContext?': securityContext,
  ...fields('bool', 'stdin?', 'stdinOnce?', 'tty?'),
} as const satisfies Fields;

const downwardItems = structList({
  path: 'string',
  'fieldRef?': pointerTo(fieldSelector),
  'resourceFieldRef?': pointerTo(resourceFieldSelector),
  'mode?': optionalInt32,
});

const claimSpec = struct({
  'accessModes?': strings,
  'selector?': pointerTo(labelSelector),
  'resources?': struct({ 'limits?': quantities, 'requests?': quantities }),
  'volumeName?': 'string',
  ...fields(optionalText, 'storageClassName?', 'volumeMode?'),
  'dataSource?': optionalStruct({ apiGroup: optionalText, kind: 'string', name: 'string' }),
  'dataSourceRef?': optionalStruct({
    apiGroup: optionalText,
    ...fields('string', 'kind', 'name'),
    'namespace?': optionalText,
  }),
  'volumeAttributesClassName?': optionalText,
});

const fsType = { 'fsType?': 'string' } as const;
const readOnly = { 'readOnly?': 'bool' } as const;
const secretRef = { 'secretRef?': pointerTo(localObject) } as const;

const volumes = structList({
  name: 'string',
  'hostPath?': optionalStruct({ path: 'string', 'type?': optionalText }),
  'emptyDir?': optionalStruct({ 'medium?': 'string', 'sizeLimit?': pointerTo(quantity) }),
  'gcePersistentDisk?': optionalStruct({ pdName: 'string', ...fsType, 'partition?': 'int32', ...readOnly }),
  'awsElasticBlockStore?': optionalStruct({
    volumeID: 'string',
    ...fsType,
    'partition?': 'int32',
    ...readOnly,
  }),
  'gitRepo?': optionalStruct({ repository: 'string', 'revision?': 'string', 'directory?': 'string' }),
  'secret?': optionalStruct({
    'secretName?': 'string',
    'items?': keyToPath,
    'defaultMode?': optionalInt32,
    'optional?': optionalBool,
  }),
  'nfs?': optionalStruct({ server: 'string', path: 'string', ...readOnly }),
  'iscsi?': optionalStruct({
    ...fields('string', 'targetPortal', 'iqn'),
    lun: 'int32',
    'iscsiInterface?': 'string',
    ...fsType,
    ...readOnly,
    'portals?': strings,
    ...fields('bool', 'chapAuthDiscovery?', 'chapAuthSession?'),
    ...secretRef,
    'initiatorName?': optionalText,
  }),
  'glusterfs?': optionalStruct({ endpoints: 'string', path: 'string', ...readOnly }),
  'persistentVolumeClaim?': optionalStruct({ claimName: 'string', ...readOnly }),
  'rbd?': optionalStruct({
    monitors: strings,
    image: 'string',
    ...fsType,
    ...fields('string', 'pool?', 'user?', 'keyring?'),
    ...secretRef,
    ...readOnly,
  }),
  'flexVolume?': optionalStruct({
    driver: 'string',
    ...fsType,
    ...secretRef,
    ...readOnly,
    'options?': stringMap,
  }),
  'cinder?': optionalStruct({ volumeID: 'string', ...fsType, ...readOnly, ...secretRef }),
  'cephfs?': optionalStruct({
    monitors: strings,
    ...fields('string', 'path?', 'user?', 'secretFile?'),
    ...secretRef,
    ...readOnly,
  }),
  'flocker?': optionalStruct({ 'datasetName?': 'string', 'datasetUUID?': 'string' }),
  'downwardAPI?': optionalStruct({ 'items?': downwardItems, 'defaultMode?': optionalInt32 }),
  'fc?': optionalStruct({
    'targetWWNs?': strings,
    'lun?': optionalInt32,
    ...fsType,
    ...readOnly,
    'wwids?': strings,
  }),
  'azureFile?': optionalStruct({ secretName: 'string', shareName: 'string', ...readOnly }),
  'configMap?': optionalStruct({
    ...localReference,
    'items?': keyToPath,
    'defaultMode?': optionalInt32,
    'optional?': optionalBool,
  }),
  'vsphereVolume?': optionalStruct({
    volumePath: 'string',
    ...fsType,
    ...fields('string', 'storagePolicyName?', 'storagePolicyID?'),
  }),
  'quobyte?': optionalStruct({
    ...fields('string', 'registry', 'volume'),
    ...readOnly,
    ...fields('string', 'user?', 'group?', 'tenant?'),
  }),
  'azureDisk?': optionalStruct({
    ...fields('string', 'diskName', 'diskURI'),
    ...fields(optionalText, 'cachingMode?', 'fsType?'),
    'readOnly?': optionalBool,
    'kind?': optionalText,
  }),
  'photonPersistentDisk?': optionalStruct({ pdID: 'string', ...fsType }),
  'projected?': optionalStruct({
    sources: structList({
      'secret?': optionalStruct({ ...localReference, 'items?': keyToPath, 'optional?': optionalBool }),
      'downwardAPI?': optionalStruct({ 'items?': downwardItems }),
      'configMap?': optionalStruct({ ...localReference, 'items?': keyToPath, 'optional?': optionalBool }),
      'serviceAccountToken?': optionalStruct({
        'audience?': 'string',
        'expirationSeconds?': optionalInt64,
        path: 'string',
      }),
      'clusterTrustBundle?': optionalStruct({
        ...fields(optionalText, 'name?', 'signerName?'),
        'labelSelector?': pointerTo(labelSelector),
        'optional?': optionalBool,
        path: 'string',
      }),
      'podCertificate?': optionalStruct({
        ...fields('string', 'signerName?', 'keyType?'),
        'maxExpirationSeconds?': optionalInt32,
        ...fields('string', 'credentialBundlePath?', 'keyPath?', 'certificateChainPath?'),
        'userAnnotations?': stringMap,
      }),
    }),
    'defaultMode?': optionalInt32,
  }),
  'portworxVolume?': optionalStruct({ volumeID: 'string', ...fsType, ...readOnly }),
  'scaleIO?': optionalStruct({
    ...fields('string', 'gateway', 'system'),
    secretRef: pointerTo(localObject),
    'sslEnabled?': 'bool',
    ...fields('string', 'protectionDomain?', 'storagePool?', 'storageMode?', 'volumeName?'),
    ...fsType,
    ...readOnly,
  }),
  'storageos?': optionalStruct({
    ...fields('string', 'volumeName?', 'volumeNamespace?'),
    ...fsType,
    ...readOnly,
    ...secretRef,
  }),
  'csi?': optionalStruct({
    driver: 'string',
    'readOnly?': optionalBool,
    'fsType?': optionalText,
    'volumeAttributes?': stringMap,
    'nodePublishSecretRef?': pointerTo(localObject),
  }),
  'ephemeral?': optionalStruct({
    'volumeClaimTemplate?': optionalStruct({ 'metadata?': objectMeta, spec: claimSpec }),
  }),
  'image?': optionalStruct({ 'reference?': 'string', 'pullPolicy?': 'string' }),
});

const requirements = structList({ key: 'string', operator: 'string', 'values?': strings });
const nodeSelectorTerm = { 'matchExpressions?': requirements, 'matchFields?': requirements } as const;
const podAffinityTerm = {
  'labelSelector?': pointerTo(labelSelector),
  'namespaces?': strings,
  topologyKey: 'string',
  'namespaceSelector?': pointerTo(labelSelector),
  ...fields(strings, 'matchLabelKeys?', 'mismatchLabelKeys?'),
} as const;
const podAffinity = optionalStruct({
  'requiredDuringSchedulingIgnoredDuringExecution?': structList(podAffinityTerm),
  'preferredDuringSchedulingIgnoredDuringExecution?': structList({
    weight: 'int32',
    podAffinityTerm: struct(podAffinityTerm),
  }),
});

const affinity = optionalStruct({
  'nodeAffinity?': optionalStruct({
    'requiredDuringSchedulingIgnoredDuringExecution?': optionalStruct({
      nodeSelectorTerms: structList(nodeSelectorTerm),
    }),
    'preferredDuringSchedulingIgnoredDuringExecution?': structList({
      weight: 'int32',
      preference: struct(nodeSelectorTerm),
    }),
  }),
  ...fields(podAffinity, 'podAffinity?', 'podAntiAffinity?'),
});

const tolerations = structList({
  ...fields('string', 'key?', 'operator?', 'value?', 'effect?'),
  'tolerationSeconds?': optionalInt64,
});

/** `spec` of a pod. */
const podSpec = struct({
  'volumes?': volumes,
  'initContainers?': structList(containerFields),
  containers: structList(containerFields),
  'ephemeralContainers?': structList({ ...containerFields, 'targetContainerName?': 'string' }),
  'restartPolicy?': 'string',
  ...fields(optionalInt64, 'terminationGracePeriodSeconds?', 'activeDeadlineSeconds?'),
  'dnsPolicy?': 'string',
  'nodeSelector?': stringMap,
  ...fields('string', 'serviceAccountName?', 'serviceAccount?'),
  'automountServiceAccountToken?': optionalBool,
  'nodeName?': 'string',
  ...fields('bool', 'hostNetwork?', 'hostPID?', 'hostIPC?'),
  'shareProcessNamespace?': optionalBool,
  'securityContext?': optionalStruct({
    'seLinuxOptions?': seLinuxOptions,
    'windowsOptions?': windowsOptions,
    ...fields(optionalInt64, 'runAsUser?', 'runAsGroup?'),
    'runAsNonRoot?': optionalBool,
    'supplementalGroups?': { list: 'int64' },
    'supplementalGroupsPolicy?': optionalText,
    'fsGroup?': optionalInt64,
    'sysctls?': structList({ name: 'string', value: 'string' }),
    'fsGroupChangePolicy?': optionalText,
    ...fields(profile, 'seccompProfile?', 'appArmorProfile?'),
    'seLinuxChangePolicy?': optionalText,
  }),
  'imagePullSecrets?': { list: localObject },
  ...fields('string', 'hostname?', 'subdomain?'),
  'affinity?': affinity,
  'schedulerName?': 'string',
  'tolerations?': tolerations,
  'hostAliases?': structList({ ip: 'string', 'hostnames?': strings }),
  'priorityClassName?': 'string',
  'priority?': optionalInt32,
  'dnsConfig?': optionalStruct({
    ...fields(strings, 'nameservers?', 'searches?'),
    'options?': structList({ 'name?': 'string', 'value?': optionalText }),
  }),
  'readinessGates?': structList({ conditionType: 'string' }),
  'runtimeClassName?': optionalText,
  'enableServiceLinks?': optionalBool,
  'preemptionPolicy?': optionalText,
  'overhead?': quantities,
  'topologySpreadConstraints?': structList({
    maxSkew: 'int32',
    ...fields('string', 'topologyKey', 'whenUnsatisfiable'),
    'labelSelector?': pointerTo(labelSelector),
    'minDomains?': optionalInt32,
    ...fields(optionalText, 'nodeAffinityPolicy?', 'nodeTaintsPolicy?'),
    'matchLabelKeys?': strings,
  }),
  'setHostnameAsFQDN?': optionalBool,
  'os?': optionalStruct({ name: 'string' }),
  'hostUsers?': optionalBool,
  'schedulingGates?': structList({ name: 'string' }),
  'resourceClaims?': structList({
    name: 'string',
    ...fields(optionalText, 'resourceClaimName?', 'resourceClaimTemplateName?'),
  }),
  'resources?': pointerTo(resources),
  'hostnameOverride?': optionalText,
  'workloadRef?': optionalStruct({ name: 'string', podGroup: 'string', 'podGroupReplicaKey?': 'string' }),
});

export type PodSpec = Of<typeof podSpec>;
export type Container = NonNullable<PodSpec['containers']>[number];

/** `spec` of a Deployment. */
export const deploymentSpec = struct({
  'replicas?': optionalInt32,
  selector: pointerTo(labelSelector),
  template: struct({ 'metadata?': objectMeta, 'spec?': podSpec }),
  'strategy?': struct({
    'type?': 'string',
    'rollingUpdate?': optionalStruct({ ...fields(pointerTo(intOrString), 'maxUnavailable?', 'maxSurge?') }),
  }),
  'minReadySeconds?': 'int32',
  'revisionHistoryLimit?': optionalInt32,
  'paused?': 'bool',
  'progressDeadlineSeconds?': optionalInt32,
});

/** Fields of a pod, by name, that a user may set for all deployments of an operator. */
export const deploymentConfigFields = {
  'nodeSelector?': pointerTo(stringMap),
  'tolerations?': tolerations,
  'resources?': pointerTo(resources),
  'envFrom?': envFrom,
  'env?': env,
  'volumes?': volumes,
  'volumeMounts?': volumeMounts,
  'affinity?': affinity,
  'annotations?': stringMap,
} as const satisfies Fields;
