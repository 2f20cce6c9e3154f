/**
 * Requirements that wait for a feature that is not in this version, and that feature. An id leaves this table in the
 * change that brings the feature and its tests. Keys are ids or whole families.
 */
export const LATER: Readonly<Record<string, string>> = {
  // What the pool has to do with it, a coded error at once and recovery, is shown in engines/docker/daemon-faults.test.ts.
  'PO-04': 'the orchestrator',
  // OR-05 and OR-11 are shown by test/tools: run.test.ts, registry.test.ts and python-tools.test.ts.
  OR: 'the orchestrator, with prompts and the journal',
  // The ephemeral containers of CA-05 are there: engines/docker/leftovers.test.ts and daemon-faults.test.ts.
  CA: 'the code agent',
  WS: 'workspaces: files, programs and sessions beyond one run',
}
