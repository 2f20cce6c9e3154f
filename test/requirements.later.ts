/**
 * Requirements that wait for a feature that is not in this version, and that feature. An id leaves this table in the
 * change that brings the feature and its tests. Keys are ids or whole families.
 */
export const LATER: Readonly<Record<string, string>> = {
  // The ephemeral containers of CA-05 are there: test/daemon/engines/docker/orphans.test.ts and daemon-faults.test.ts.
  CA: 'the code agent',
}
