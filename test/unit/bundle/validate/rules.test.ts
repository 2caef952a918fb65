import { describe, expect, it } from 'vitest';
import { mailAddressFault } from '../../../../src/bundle/validate/mail-address.js';
import { labelKeyFaults, subdomainFaults } from '../../../../src/kube/names.js';
import { parseRequestUri } from '../../../../src/bundle/validate/uri.js';
import { type Loose, findIn } from './bundle.js';

const messages = (found: string[]): string[] => found.map((one) => one.replace(/^.*?(error|warning): /, ''));

describe('rules of a ClusterServiceVersion', () => {
  it.each<[string, string, string]>([
    ['alm-examples', '{', 'invalid example: '],
    ['alm-examples', '[{}]', "error decoding example CustomResource: Object 'Kind' is missing"],
    ['alm-examples', '[null]', "error decoding example CustomResource: Object 'Kind' is missing"],
    ['alm-examples', '{}', 'error decoding example CustomResource: '],
    [
      'alm-examples',
      '[{"apiVersion":"g/v1","kind":"K"}]',
      'Value g/v1, Kind=K: example must have a provided API',
    ],
    [
      'olm.skiprange',
      '',
      'Value widget.v1.0.0: provided annotation olm.skiprange uses wrong case and should be olm.skipRange instead',
    ],
  ])('annotation %s %s', (key, value, message) => {
    const found = messages(findIn(({ csv }) => (csv['metadata'].annotations[key] = value)));
    expect(found.some((one) => one.startsWith(message))).toBe(true);
  });

  it.each<[string, unknown, string[]]>([
    ['installModes', [], ['(widget.v1.0.0) install modes not found']],
    [
      'installModes',
      [{ type: 'AllNamespaces', supported: false }],
      ['(widget.v1.0.0) none of InstallModeTypes are supported'],
    ],
    ['minKubeVersion', '1.25', ['(widget.v1.0.0) csv.Spec.MinKubeVersion has an invalid value: 1.25']],
    ['install', {}, ['Field Spec.InstallStrategy: required field missing']],
    [
      'install',
      { strategy: 'x', spec: { permissions: [] } },
      ['Field Spec.InstallStrategy.StrategySpec.DeploymentSpecs: required field missing'],
    ],
    ['version', 'x', ['spec.version']],
    ['displayName', 1, ['spec.displayName: expected a string, got the number 1']],
  ])('spec.%s %j', (field, value, wanted) => {
    const found = messages(findIn(({ csv }) => (csv['spec'][field] = value)));
    expect(found.map((one, index) => one.slice(0, wanted[index]?.length))).toEqual(wanted);
  });
});

describe('rules of custom resource definitions', () => {
  it.each<[string, (crd: Loose) => void, unknown[]]>([
    [
      'name',
      (crd) => (crd['metadata'].name = 'x.y'),
      [
        'metadata.name: Invalid value: "x.y": must be spec.names.plural+"."+spec.group',
        'owned CRD widgets.example.com/v1 not found in bundle "widget.v1.0.0"',
      ],
    ],
    [
      'namespace',
      (crd) => (crd['metadata'].namespace = 'x'),
      ['metadata.namespace: Forbidden: not allowed on this type'],
    ],
    [
      'scope',
      (crd) => (crd['spec'].scope = 'All'),
      ['spec.scope: Unsupported value: "All": supported values: "Cluster", "Namespaced"'],
    ],
    [
      'kind',
      (crd) => (crd['spec'].names.listKind = 'Widget'),
      ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
    ],
    [
      'columns',
      (crd) => (crd['spec'].versions[0].additionalPrinterColumns = [{ name: '', type: 'x', jsonPath: 'y' }]),
      [
        'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "y": must be a simple json path starting with .',
        'spec.additionalPrinterColumns[0].name: Required value',
        'spec.additionalPrinterColumns[0].type: Invalid value: "x": must be one of boolean,date,integer,number,string',
      ],
    ],
    [
      'scale',
      (crd) =>
        (crd['spec'].versions[0].subresources = {
          scale: { specReplicasPath: '.x', statusReplicasPath: '' },
        }),
      ['spec.subresources.scale.specReplicasPath: Invalid value: ".x": should be a json path under .spec'],
    ],
    [
      'preserveUnknownFields',
      (crd) => (crd['spec'].preserveUnknownFields = true),
      [
        'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ],
    ],
    [
      'webhook',
      (crd) =>
        (crd['spec'].conversion = {
          strategy: 'Webhook',
          webhook: { clientConfig: { url: 'http://a' }, conversionReviewVersions: ['v2'] },
        }),
      [
        'spec.conversion.conversionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
        'spec.conversion.webhookClientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; desired format: https://host[/path]',
      ],
    ],
    [
      'versions',
      (crd) => crd['spec'].versions.push({ ...crd['spec'].versions[0] }),
      [
        'spec.versions: Invalid value: must contain unique version names',
        'spec.versions: Invalid value: must have exactly one version marked as storage version',
      ],
    ],
    [
      'selectable fields',
      (crd) => {
        const spec = { properties: { 'a-b': { type: 'string' }, b: {} }, type: 'object' };
        const labels = { additionalProperties: { type: 'string' }, type: 'object' };
        crd['spec'].versions[0].schema.openAPIV3Schema.properties = { spec, labels, metadata: spec };
        crd['spec'].versions[0].selectableFields = [
          ...['.spec.a-b', '.labels.c', '', 'x', '.', ".spec['b']", '.spec.c', '.spec.b'],
          ...['.metadata.a-b', '.labels.c'],
          ...Array.from({ length: 5 }, (_, index) => `.labels.l${index}`),
        ].map((jsonPath) => ({ jsonPath }));
      },
      [
        'spec.selectableFields: Too many: 9: must have at most 8 items',
        'spec.selectableFields[2].jsonPath: Required value',
        'spec.selectableFields[3].jsonPath: Invalid value: "x": is an invalid path: expected [ or . but got: x',
        'spec.selectableFields[4].jsonPath: Invalid value: ".": is an invalid path: unexpected end of JSON path',
        'spec.selectableFields[5].jsonPath: Invalid value: ".spec[\'b\']": is an invalid path: array notation is not allowed',
        'spec.selectableFields[6].jsonPath: Invalid value: ".spec.c": is an invalid path: does not refer to a valid field',
        'spec.selectableFields[7].jsonPath: Invalid value: ".spec.b": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
        'spec.selectableFields[8].jsonPath: Invalid value: ".metadata.a-b": must not point to fields in metadata',
        'spec.selectableFields[9].jsonPath: Duplicate value: ".labels.c"',
      ],
    ],
    [
      'selectable fields without schemas',
      ({ spec }) => {
        const version = { served: true, storage: false, schema: undefined };
        spec.versions.push(
          { ...version, name: 'v2', selectableFields: [] },
          { ...version, name: 'v3', selectableFields: [{ jsonPath: '.a' }] },
        );
      },
      [
        'spec.versions[2].selectableFields: Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included',
      ],
    ],
    [
      'metadata',
      (crd) => {
        const owner = { apiVersion: 'a/b/c', kind: 'K', name: 'n', uid: '', controller: true };
        Object.assign(crd['metadata'], {
          generateName: 'a_b',
          generation: -1,
          finalizers: ['orphan', 'foregroundDeletion', 'a b'],
          ownerReferences: [owner, { ...owner, apiVersion: 'v1', kind: 'Event', uid: 'u' }],
          managedFields: [{ fieldsType: 'x', manager: 'm'.repeat(129), subresource: 's'.repeat(257) }],
        });
      },
      [
        expect.stringMatching(/^metadata\.finalizers: Invalid value: "a b": name part must consist of /),
        'metadata.finalizers: Invalid value: finalizer orphan and foregroundDeletion cannot be both set',
        expect.stringMatching(
          /^metadata\.generateName: Invalid value: "a_b": a lowercase RFC 1123 subdomain /,
        ),
        'metadata.generateName: Invalid value: "a_b": must be spec.names.plural+"."+spec.group',
        'metadata.generation: Invalid value: -1: must be greater than or equal to 0',
        'metadata.managedFields[0].fieldsType: Invalid value: "x": must be `FieldsV1`',
        'metadata.managedFields[0].manager: Too long: may not be more than 128 bytes',
        'metadata.managedFields[0].operation: Invalid value: "": must be `Apply` or `Update`',
        'metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes',
        'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty',
        'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        'metadata.ownerReferences: Invalid value: /v1, Kind=Event is disallowed from being an owner',
        'metadata.ownerReferences: Invalid value: Only one reference can have Controller set to true. Found "true" in references for K/n and Event/n',
      ],
    ],
    [
      'deprecation',
      (crd) => Object.assign(crd['spec'].versions[0], { deprecated: true, deprecationWarning: 'é\t' }),
      [
        'spec.versions[0].deprecationWarning: Invalid value: "é\\t": must only contain printable UTF-8 characters; non-printable character found at index 2',
      ],
    ],
    [
      'conversion without webhook',
      (crd) => (crd['spec'].conversion = { strategy: 'Webhook' }),
      [
        'spec.conversion.conversionReviewVersions: Required value',
        'spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook',
      ],
    ],
    [
      'conversion with an unused webhook',
      (crd) =>
        (crd['spec'].conversion = {
          strategy: 'None',
          webhook: { clientConfig: {}, conversionReviewVersions: ['v1'] },
        }),
      ['conversionReviewVersions', 'webhookClientConfig'].map(
        (name) => `spec.conversion.${name}: Forbidden: should not be set when strategy is not set to Webhook`,
      ),
    ],
    [
      'webhook service',
      (crd) =>
        (crd['spec'].conversion = {
          strategy: 'Webhook',
          webhook: {
            clientConfig: { service: { name: '', namespace: '', port: 0, path: 'x//y' } },
            conversionReviewVersions: ['v1', 'v1'],
          },
        }),
      [
        'spec.conversion.conversionReviewVersions[1]: Invalid value: "v1": duplicate version',
        'spec.conversion.webhookClientConfig.service.name: Required value',
        'spec.conversion.webhookClientConfig.service.namespace: Required value',
        'spec.conversion.webhookClientConfig.service.path: Invalid value: "x//y": must start with a \'/\'',
        'spec.conversion.webhookClientConfig.service.path: Invalid value: "x//y": segment[0] may not be empty',
        'spec.conversion.webhookClientConfig.service.path: Invalid value: "x//y": segment[1] may not be empty',
        'spec.conversion.webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive',
      ],
    ],
    [
      'webhook without a URL',
      (crd) =>
        (crd['spec'].conversion = {
          strategy: 'Webhook',
          webhook: { clientConfig: {}, conversionReviewVersions: ['v1'] },
        }),
      ['spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required'],
    ],
    [
      'webhook URL',
      (crd) =>
        (crd['spec'].conversion = {
          strategy: 'Webhook',
          webhook: { clientConfig: { url: 'https://u:p@/?q#f' }, conversionReviewVersions: ['v1'] },
        }),
      [
        'spec.conversion.webhookClientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]',
        'spec.conversion.webhookClientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
        'spec.conversion.webhookClientConfig.url: Invalid value: "q": query parameters are not permitted in the URL',
        'spec.conversion.webhookClientConfig.url: Invalid value: user information is not permitted in the URL',
      ],
    ],
    [
      'defaults in the old form',
      (crd) => {
        crd['apiVersion'] = 'apiextensions.k8s.io/v1beta1';
        crd['spec'].validation = { openAPIV3Schema: { properties: { a: { items: [{ default: 1 }] } } } };
        delete crd['spec'].versions[0].schema;
        crd['spec'].conversion = { strategy: 'Webhook', webhookClientConfig: { url: 'https://a' } };
      },
      [
        'spec.conversion.strategy: Invalid value: "Webhook": must be None if spec.preserveUnknownFields is true',
        'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
        'spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema',
      ],
    ],
    [
      'old form',
      (crd) => (crd['apiVersion'] = 'apiextensions.k8s.io/v1beta2'),
      [
        'Unsupported api version of CRD: apiextensions.k8s.io/v1beta2',
        'owned CRD widgets.example.com/v1 not found in bundle "widget.v1.0.0"',
      ],
    ],
  ])('%s', (_, change, wanted) => {
    const found = findIn(({ crd }) => change(crd)).filter((one) => / error: /.test(one));
    expect(messages(found).sort()).toEqual(wanted);
  });

  it('requires approval for protected groups', () => {
    const approve = (approval?: string): string[] =>
      findIn(({ crd, csv }) => {
        crd['spec'].group = 'x.k8s.io';
        crd['metadata'] = {
          name: 'widgets.x.k8s.io',
          ...(approval !== undefined && { annotations: { 'api-approved.kubernetes.io': approval } }),
        };
        csv['spec'].customresourcedefinitions.owned[0].name = 'widgets.x.k8s.io';
        csv['metadata'].annotations['alm-examples'] = '[]';
      }).filter((one) => one.includes('api-approved'));
    expect(approve()).toEqual([
      expect.stringContaining('Required value: protected groups must have approval annotation'),
    ]);
    expect(approve('no')).toEqual([expect.stringContaining('Invalid value: "no": protected groups')]);
    expect(approve('https://github.com/a')).toEqual([]);
    expect(approve('unapproved, for tests')).toEqual([]);
  });
});

describe('optional validators', () => {
  const csvWith = (change: (csv: Loose) => void, name: 'operatorhub' | 'good-practices' | 'install') =>
    messages(findIn(({ csv }) => change(csv), { optional: [name] }));

  it('operatorhub', () => {
    const found = csvWith(({ spec, metadata }) => {
      spec.provider = {};
      spec.maintainers = [{ name: 'a', email: 'x' }, {}];
      spec.links = [{ name: 'a', url: 'x' }];
      spec.icon = [{ base64data: 'a', mediatype: 'image/foo' }];
      spec.version = '0.0.0';
      metadata.annotations.capabilities = 'Full';
      metadata.annotations.categories = 'Database,Foo';
    }, 'operatorhub');
    expect(found.sort()).toEqual(
      [
        '(widget.v1.0.0) csv.Metadata.Annotations["categories"] value "Foo" is not in the set of standard categories',
        '(widget.v1.0.0) csv.Metadata.Annotations.Capabilities "Full" is not a valid capabilities level',
        '(widget.v1.0.0) csv.Spec.Icon image/foo does not have a valid mediatype',
        '(widget.v1.0.0) csv.Spec.Links url x is invalid: parse "x": invalid URI for request',
        "(widget.v1.0.0) csv.Spec.Maintainers email x is invalid: mail: missing '@' or angle-addr",
        '(widget.v1.0.0) csv.Spec.Maintainers elements should contain both name and email',
        '(widget.v1.0.0) csv.Spec.Provider.Name not specified',
        '(widget.v1.0.0) csv.Spec.Version must be set',
      ].sort(),
    );
    const own = findIn(() => undefined, {
      optional: ['standardcategories'],
      categories: new Set(['Database']),
    });
    expect(messages(own)).toEqual([
      '(widget.v1.0.0) csv.Metadata.Annotations["categories"] value " Security" is not in the set of custom categories',
    ]);
  });

  it('bundle-objects', () => {
    const others = {
      'manifests/a.yaml': {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'a' },
        spec: { maxUnavailable: '0%', minAvailable: '100%' },
      },
      'manifests/b.yaml': {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'b' },
        spec: { maxUnavailable: '25%' },
      },
      'manifests/c.yaml': {
        apiVersion: 'v1',
        kind: 'PriorityClass',
        metadata: { name: 'c' },
        globalDefault: true,
      },
      'manifests/d.yaml': {
        apiVersion: 'v1',
        kind: 'Role',
        metadata: { name: 'd' },
        rules: [
          {
            apiGroups: ['security.openshift.io'],
            resources: ['securitycontextconstraints'],
            verbs: ['*'],
            resourceNames: ['anyuid'],
          },
        ],
      },
    };
    expect(messages(findIn(() => undefined, { optional: ['bundle-objects'], others }))).toEqual([
      'maxUnavailable field cannot be set to 0 or 0%',
      'minAvailable field cannot be set to 100%',
      'globalDefault field cannot be set to true',
      'RBAC includes permission to modify default securitycontextconstraints, which could impact cluster stability',
    ]);
    expect(findIn(() => undefined, { others })).toEqual([]);
  });

  it('good-practices', () => {
    const found = csvWith(({ spec, metadata }) => {
      metadata.name = 'widget';
      delete spec.install.spec.deployments[0].spec.template.spec.containers[0].resources;
      delete spec.customresourcedefinitions.owned[0].description;
      const rules = [
        { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get'] },
        { apiGroups: ['apiextensions.k8s.io'], resources: ['*'], verbs: ['patch'] },
      ];
      spec.install.spec.clusterPermissions = [{ serviceAccountName: 'widget', rules }];
    }, 'good-practices');
    expect(found.map((one) => one.slice(0, 70))).toEqual([
      'Value widget: csv.metadata.Name widget is not following the recommende',
      'Value widget: csv.metadata.Name widget is not following the versioning',
      'Value widget: unable to find the resource requests for the container: ',
      'Value widget: CSV contains permissions to create CRD. An Operator shou',
      'Value widget: owned CRD "widgets.example.com" has an empty description',
    ]);
  });

  it('alpha-deprecated-apis compares with the target version of the bundle', () => {
    const others = {
      'manifests/pdb.yaml': {
        apiVersion: 'policy/v1beta1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'a' },
      },
    };
    const levels = (minKubeVersion: string, k8sVersion?: string): string[] =>
      findIn(({ csv }) => (csv['spec'].minKubeVersion = minKubeVersion), {
        optional: ['alpha-deprecated-apis'],
        others,
        k8sVersion,
      }).map((one) => one.replace(/Value.*Migrate/, 'Migrate'));
    const told = 'Migrate the API(s) for PodDisruptionBudget: (["a"])';
    expect(levels('1.24.0')).toEqual([`manifests/pdb.yaml:1: warning: ${told}`]);
    expect(levels('1.25.0')).toEqual([`manifests/pdb.yaml:1: error: ${told}`]);
    expect(levels('1.20.0', '1.26')).toEqual([`manifests/pdb.yaml:1: error: ${told}`]);
  });

  it('alpha-deprecated-apis reads the APIs and permissions that a bundle declares', () => {
    const kind = 'podsecuritypolicies';
    const rules = [{ apiGroups: ['policy'], resources: [kind], verbs: ['use'] }];
    const find = (resources: Loose[]): string[] =>
      messages(
        findIn(
          ({ csv }) => {
            csv['spec'].install.spec.permissions = [{ serviceAccountName: 'widget', rules }];
            csv['spec'].customresourcedefinitions.owned[0].resources = resources;
          },
          { optional: ['alpha-deprecated-apis'] },
        ),
      ).map((one) => one.replace(/.*for /, ''));
    const place = 'ClusterServiceVersion.Spec';
    expect(find([{ kind: 'CronJob', version: 'batch/v1beta1' }])).toEqual([
      `CronJob: (["${place}.CustomResourceDefinitions.Owned[0].Resource[0]"])`,
      `${kind}: (["${place}.InstallStrategy.StrategySpec.Permissions[0].Rules[0]"])`,
    ]);
    expect(find([{ kind: 'PodSecurityPolicie', version: 'v1' }])).toEqual([]);
  });

  it('community', () => {
    const run = (properties?: string): string[] =>
      messages(
        findIn(
          ({ crd, csv }) => {
            crd['apiVersion'] = 'apiextensions.k8s.io/v1beta1';
            crd['spec'].preserveUnknownFields = false;
            if (properties !== undefined) csv['metadata'].annotations['olm.properties'] = properties;
          },
          { optional: ['community'] },
        ),
      ).filter((one) => one.includes('csv.Annotations'));
    const max = (value: string): string => JSON.stringify([{ type: 'olm.maxOpenShiftVersion', value }]);
    expect(run()).toEqual([expect.stringContaining('csv.Annotations not specified olm.maxOpenShiftVersion')]);
    expect(run('{')).toEqual([expect.stringContaining('has an invalid value specified for olm.properties')]);
    expect(run('[]')).toEqual([expect.stringContaining('with the key `olm.maxOpenShiftVersion`')]);
    expect(run(max('4.9'))).toEqual([
      expect.stringContaining('has the OCP version value 4.9 which is >= of 4.9'),
    ]);
    expect(run(max('4.8.1'))).toEqual([expect.stringContaining('4.8.1 will be truncated to 4.8.0')]);
    expect(run(max('4.8'))).toEqual([]);
  });

  it('install', () => {
    const others = {
      'manifests/sa.yaml': { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'widget' } },
    };
    const found = findIn(
      ({ csv }) =>
        (csv['spec'].relatedImages = [
          { name: 'a', image: 'A' },
          { name: 'b', image: '' },
        ]),
      {
        optional: ['install'],
        others,
      },
    );
    expect(messages(found).map((one) => one.slice(0, 80))).toEqual(
      [
        'Value spec.relatedImages[0].image: relatedImages[0] has an invalid image pullspec',
        'Value spec.relatedImages[1].image: relatedImages[1] has an empty image field',
        'Value widget: invalid service account found in bundle. This service account widg',
      ].map((one) => one.slice(0, 80)),
    );
    const large = findIn(() => undefined, {
      optional: ['install'],
      others: {
        'manifests/large.yaml': {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'a' },
          data: { a: noise(1_400_000) },
        },
      },
    });
    expect(messages(large)).toEqual([
      expect.stringMatching(
        /^Value widget\.v1\.0\.0: maximum bundle compressed size with gzip size exceeded: size=~1\.\d MB , max=1\.0 MB\./,
      ),
    ]);
  });
});

/** Text that does not compress. */
function noise(length: number): string {
  let state = 1;
  let text = '';
  while (text.length < length) {
    state = (state * 48271) % 0x7fffffff;
    text += state.toString(36);
  }
  return text;
}

describe('mailAddressFault', () => {
  it.each([
    ['a@b', undefined],
    ['Foo Bar <a@b.c>', undefined],
    ['"a b"@c', undefined],
    ['a@[1.2.3.4]', undefined],
    ['ü@example.com', undefined],
    ['a@b (comment (\\)))', undefined],
    ['"\\"" <a@b>', undefined],
    ['foo', "mail: missing '@' or angle-addr"],
    ['a b', 'mail: no angle-addr'],
    [' ', 'mail: no address'],
    ['a@b, c@d', 'mail: expected single address, got ", c@d"'],
    ['<a@b', 'mail: unclosed angle-addr'],
    ['a <>', 'mail: invalid string'],
    ['a@b (c', 'mail: misformatted parenthetical comment'],
    ['<.a@b>', 'mail: leading dot in atom'],
    ['"x', 'mail: missing word in phrase: mail: unclosed quoted-string'],
    ['"\u0001"', "mail: missing word in phrase: mail: bad character in quoted-string: '\\x01'"],
    ['A <', 'mail: no addr-spec'],
    ['<""@a>', 'mail: empty quoted string in addr-spec'],
    ['<a@', 'mail: no domain in addr-spec'],
    ['<a@[b', 'mail: unclosed domain-literal'],
    ['<a@[b]>', 'mail: invalid IP address in domain-literal: "b"'],
    ['<a..b@c>', 'mail: double dot in atom'],
    ['<a.@b>', 'mail: trailing dot in atom'],
  ])('%s', (text, fault) => {
    expect(mailAddressFault(text)).toBe(fault);
  });
});

describe('parseRequestUri', () => {
  const fault = (text: string): string | undefined => {
    const uri = parseRequestUri(text);
    return 'fault' in uri ? uri.fault.replace(/^parse "(?:[^"\\]|\\.)*": /, '') : undefined;
  };
  it.each([
    ['https://example.com/a?b#c', undefined],
    ['/x', undefined],
    ['mailto:x', undefined],
    ['https://[::1]:2/', undefined],
    ['https://ü.de/ä', undefined],
    ['x.y', 'invalid URI for request'],
    [':x', 'missing protocol scheme'],
    ['https://a:b', 'invalid port ":b" after host'],
    ['https://a:1:2/', 'invalid port ":1:2" after host'],
    ['https://[::1', "missing ']' in host"],
    ['https://x y', 'invalid character " " in host name'],
    ['https://x%41', 'invalid URL escape "%41"'],
    ['https://a[::1]', 'invalid IP-literal'],
    ['https://a#b', 'invalid character "#" in host name'],
    ['https://a/%zz', 'invalid URL escape "%zz"'],
    ['https://a\nb', 'net/url: invalid control character in URL'],
    ['https://u s@x', 'net/url: invalid userinfo'],
  ])('%s', (text, wanted) => {
    expect(fault(text)).toBe(wanted);
  });
});

describe('rules of names', () => {
  it('are measured in bytes, and are fast for long texts', () => {
    expect(subdomainFaults('a'.repeat(254))).toEqual(['must be no more than 253 characters']);
    expect(subdomainFaults('a-'.repeat(100_000))).toHaveLength(2);
    expect(labelKeyFaults('a/b/c')[0]).toMatch(/^a valid label key must consist of /);
    expect(labelKeyFaults('/')).toHaveLength(3);
    expect(labelKeyFaults('example.com/My_Name')).toEqual([]);
  });
});
