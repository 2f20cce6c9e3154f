/**
 * Requirements that wait for a feature that is not in this version, and that feature. An id leaves this table in the
 * change that brings the feature and its tests. Keys are ids or whole families.
 */
export const LATER: Readonly<Record<string, string>> = {
  // The ephemeral containers of CA-05 are there: test/daemon/engines/docker/orphans.test.ts and daemon-faults.test.ts.
  CA: 'the code agent',
  'WS-01': 'the names and the layout of the original workspace',
  'WS-02': 'the names and the layout of the original workspace',
  'WS-03': 'the names and the layout of the original workspace',
  'WS-05': 'staging from artifacts, skills and directories of the host',
  'WS-06': 'staging from artifacts, skills and directories of the host',
  'WS-07': 'prefixes such as $OUTPUT_DIR in globs; collecting itself is there',
  'WS-08': 'artifacts',
  'WS-09': 'artifacts',
  'WS-10': 'artifacts',
  'WS-12': 'artifacts on disk and in S3; those in memory are there',
  'WS-15': 'cpuPercent of one program; its memory and processes are limited',
  'WS-19': 'the code executor over workspaces',
  'WS-20': 'the code executor over workspaces',
  'WS-21': 'the code executor over workspaces',
  'WS-22': 'providers of variables; nothing of the host is inherited',
  'WS-24': 'artifacts',
  'WS-25': 'the names and the layout of the original workspace',
  'WS-26': 'staging from artifacts, skills and directories of the host',
  'WS-27': 'the names and the layout of the original workspace',
  'WS-28': 'artifacts',
}
