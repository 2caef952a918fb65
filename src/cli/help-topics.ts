/** Help that belongs to no command, by its name: `opmate help versions`. */
export const helpTopics: Readonly<Record<string, string>> = {
  versions: `Version ranges, in --version of any command and in filter files:

  1.2.3               this version only
  >=1.2.0 <2.0.0      all comparisons must hold: = != > >= < <=
  1.0.0 || >=2.1.0    any of the groups must hold
  1.2.x               any patch of 1.2, also 1.2.* and 1.x

Ranges in catalogs (olm.skipRange, read by OLM v0) are written like this, with complete versions. OLM v1 also takes
parts of versions and four more forms, and so does opmate:

  >=1.2, <2           a comma also joins comparisons
  ~1.2                >=1.2.0 <1.3.0
  ^1.2                >=1.2.0 <2.0.0
  1.2 - 1.4           >=1.2.0 <1.5.0

A range in a form of OLM v1 matches a pre-release such as 2.0.0-rc.1 only if it names a pre-release itself. The forms
that both have are read like skipRange by "catalog filter" and like OLM v1 by "bundle resolve".
`,
  'exit-codes': `Exit codes:

  0     done
  1     failed
  2     wrong usage
  3     findings or differences
  4     partly done; the rest is listed on stderr
  130   interrupted
  141   standard output was closed

Commands of opm, oc and oc-mirror keep the exit codes of these tools: wrong usage and findings end with 1, and
"registry add" and "index add" end with 2 if an image and with 3 if a version is in the index already.
`,
};
