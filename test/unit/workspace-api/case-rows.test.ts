import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { allWorkspaceCases } from '../../support/workspace-cases.ts'

/*
 * Each row of the original's acceptance cases is a test here, or a difference that docs/mission.md tells. This table says which.
 */

const ROOT = join(import.meta.dirname, '../../..')
const PAGE = readFileSync(join(ROOT, 'docs/mission.md'), 'utf8').replaceAll(/\s+/g, ' ')

/** A file below `test/` and a part of it, such as a title; `page` stands for docs/mission.md. */
type Place = readonly [file: string, text: string]
/** The rows of a place: all, or these. */
type Shown = readonly [...Place, ...rows: readonly number[]]

const TEXT = 'unit/workspace-api/text.test.ts'
const REFS = 'unit/workspace-api/refs.test.ts'
const METADATA = 'unit/workspace-api/metadata.test.ts'
const METADATA_AT_ONCE = 'unit/workspace-api/metadata.slow.test.ts'
const REGISTRY = 'unit/workspace-api/registry.test.ts'
const RUN_ENV = 'unit/workspace-api/run-env.test.ts'
const ENGINE = 'sandbox/workspace-api/engine.test.ts'
const EXECUTOR = 'sandbox/workspace-api/code-executor.test.ts'
const EACH_ENGINE = 'support/workspace-api-rules.ts'
const TOOLS_OF_THE_LIBRARY = 'belong to tools of that library and have no counterpart'

const ROWS: Readonly<Record<string, readonly Shown[]>> = {
  'artifact_store.cases': [
    ['unit/artifacts/artifacts.test.ts', 'versions start at 0, and the latest is loaded by default', 0],
    ['unit/artifacts/context.test.ts', 'a save without a session goes to the session without any id', 1],
  ],
  'artifact_store.paths': [['page', 'Artifacts have no paths']],
  'artifact_store.user_namespace': [['unit/artifacts/names.test.ts', "workspaceCases('artifact_store')"]],
  'build_block_spec.cases': [[TEXT, "workspaceCases('build_block_spec')"]],
  'dir_digest.cases': [[METADATA, "workspaceCases('dir_digest')"]],
  'env_scrub.cases': [[RUN_ENV, "workspaceCases('env_scrub')['cases']"]],
  'env_scrub.env_token': [['page', 'No command line is made of variables']],
  'env_scrub.local_program_env': [
    [EACH_ENGINE, "workspaceCases('env_scrub')['local_program_env']"],
    ['page', 'No environment variable of the host reaches a program', 0, 1],
  ],
  'env_scrub.merge_provider': [
    [RUN_ENV, "workspaceCases('env_scrub')['merge_provider']"],
    ['page', 'and malformed names, are always dropped', 2],
  ],
  'env_scrub.structure': [
    [RUN_ENV, 'expect(JSON.stringify(spec)).toBe(before)', 0],
    [RUN_ENV, 'without a provider, or without an engine, it is the same object', 1, 2, 3],
    ['page', 'An engine always has a runner', 4],
  ],
  'extract_code_block.cases': [[TEXT, "workspaceCases('extract_code_block')"]],
  'file_ref_parse.cases': [
    [REFS, "workspaceCases('file_ref_parse')"],
    ['page', 'A source of an input always names its scheme', 0],
  ],
  'file_ref_parse.display_name': [['page', TOOLS_OF_THE_LIBRARY]],
  'file_ref_parse.is_internal_ref': [['page', TOOLS_OF_THE_LIBRARY]],
  'file_ref_parse.try_read': [['page', TOOLS_OF_THE_LIBRARY]],
  'file_ref_parse.workspace_ref': [['page', TOOLS_OF_THE_LIBRARY]],
  'input_names.cases': [
    [REFS, "workspaceCases('input_names')", 0, 1, 2, 3, 4, 8, 9],
    ['page', TOOLS_OF_THE_LIBRARY, 5, 6, 7],
  ],
  'interactive_session.cases': [
    ['page', 'The log of a session is bounded by bytes', 0, 3],
    ['unit/workspace/program-log.test.ts', 'the log is bounded and says what it dropped', 0, 3],
    ['support/program-rules.ts', 'what is written after the end is refused, and close can be called twice', 1, 2],
    ['page', 'A session has its input from the start', 1],
  ],
  'interactive_session.live': [[EACH_ENGINE, "workspaceCases('interactive_session')['live']"]],
  'is_text_mime.cases': [[TEXT, "workspaceCases('is_text_mime')"]],
  'local_execute_code.cases': [
    [EXECUTOR, "workspaceCases('local_execute_code')", 0, 1, 2],
    [EXECUTOR, '10 executions in one workspace at the same time keep apart, touch no file of a user', 3, 4],
    [EXECUTOR, "{ language: 'python', code: 'x = 1' }", 5],
  ],
  'local_runtime.cases': [
    [ENGINE, "workspaceCases('local_runtime')", 0, 1, 2, 3],
    [ENGINE, 'the variables of the layout are there unless the spec has them', 4],
    ['page', 'No program runs in a directory of the host', 5, 6],
    [ENGINE, 'modes have defaults, and paths stay inside, also behind a planted link', 7, 8],
    [ENGINE, "fs.stageDirectory(ws, join(host, 'missing'), 'x')).rejects", 9],
    [ENGINE, 'a directory is copied, or shown read-only', 10],
    [ENGINE, 'a file is collected once, whatever globs and links name it; long ones are cut', 11, 12, 13, 14, 15],
    [ENGINE, 'limits, names, versions and text; what is cut is never saved', 16],
    [ENGINE, "collectOutputs(ws, { globs: ['.'] })", 17],
    [ENGINE, 'a link to nowhere is left out, and named', 18],
    ['page', 'A dangling link among the outputs is not an error', 18],
    [ENGINE, 'each source lands exactly at its place', 19, 20, 21, 22, 23, 24],
    ['page', 'A directory that is an input lands at its `to`, not beside it', 24],
    [ENGINE, "{ from: 'skill://tool/k.txt', to: 'work/inputs/lk.txt', mode: 'link' }", 25],
    [EXECUTOR, 'executor.executeCode({ codeBlocks: [] })', 26],
  ],
  'metadata_behaviour.cases': [
    [METADATA, 'EnsureLayout creates directories and metadata', 0],
    [METADATA, 'Load missing: defaults', 1],
    [METADATA, 'corrupt: %.40s is reported and set aside', 2],
    [METADATA, 'Save when metadata.json is a directory', 3],
    [METADATA_AT_ONCE, '24 concurrent read-modify-writes under the lock', 4],
    [METADATA, 'lock with a cancelled signal', 5],
    [ENGINE, 'WS-24: a script that spoils the metadata changes nothing that the host knows', 6, 7],
    ['page', 'Records of prepared workspaces and hooks at the start of a workspace have none either', 8],
  ],
  'metadata_temp_names.cases': [[METADATA, "workspaceCases('metadata_temp_names')['cases']"]],
  'metadata_temp_names.root_path_cases': [[METADATA, "workspaceCases('metadata_temp_names')['root_path_cases']"]],
  'normalize_globs.cases': [[TEXT, "workspaceCases('normalize_globs')"]],
  'output_spec_json.cases': [[TEXT, "workspaceCases('output_spec_json')"]],
  'output_window.cases': [
    ['unit/workspace/output-window.test.ts', "workspaceCases('output_window')", 1, 2, 3],
    ['page', 'There is no output without a limit', 0],
  ],
  'output_window.helpers': [['unit/workspace/output-window.test.ts', "CASES['helpers']"]],
  'parse_artifact_ref.cases': [[REFS, "workspaceCases('parse_artifact_ref')"]],
  'pinned_artifact_version.cases': [[METADATA, "workspaceCases('pinned_artifact_version')"]],
  'registry_and_init.cases': [
    [REGISTRY, 'reuse, and concurrent acquires: one id has one workspace, made once', 0, 1],
    [REGISTRY, 'cancelled before a miss: nothing is made', 2],
    [REGISTRY, 'instance id changes: it is made again, once for all callers', 3, 5],
    [REGISTRY, 'instance validation fails: that is the error, and the workspace is kept', 4],
    [
      'page',
      'Records of prepared workspaces and hooks at the start of a workspace have none either',
      6,
      7,
      8,
      9,
      10,
      11,
    ],
  ],
  'result_string.cases': [[TEXT, "workspaceCases('result_string')"]],
  'stdio_tool_bridge.cases': [
    ['sandbox/tools/run.ts', 'OR-05: a script calls tools with zod schemas', 0, 9],
    ['../src/testing/conformance/runs.ts', 'an exception with its message and the traceback', 1],
    ['page', 'A line of an unknown type is counted', 2],
    ['unit/executor/protocol.test.ts', 'ignoredFrames', 2],
    ['daemon/engines/docker/errors.test.ts', 'harness_start_failed', 3],
    ['page', 'The bridge of `codeact`', 4, 5, 6],
    ['sandbox/tools/run.ts', "a tool that never answers: the run's timeout ends it, its signal fires", 7],
    ['unit/executor/channel.test.ts', 'destroy_failed', 8],
  ],
  'stdio_tool_bridge.gateway': [
    ['unit/tools/bridge.test.ts', 'arguments that do not match', 0],
    ['unit/tools/bridge.test.ts', 'a tool that does not exist', 1],
    ['unit/tools/prepared-tool.test.ts', "pattern: '('", 2],
    ['unit/tools/registry.test.ts', 'rejects a duplicate name in a sandbox, and values that are not tools', 3, 4],
    ['page', 'The bridge of `codeact`', 5, 6],
  ],
  'stdio_tool_bridge.limits': [['page', 'The bridge of `codeact`']],
  'wait_for_program_output.cases': [
    ['unit/workspace/program-log.test.ts', "workspaceCases('wait_for_program_output')"],
  ],
  'wait_for_program_output.defaults': [['page', 'The log of a session is bounded by bytes']],
  'wait_for_program_output.poll_line_limit': [['page', 'The log of a session is bounded by bytes']],
  'wait_for_program_output.yield_duration': [['page', '`poll` returns at once']],
  'workspace_paths.cases': [
    [TEXT, "workspaceCases('workspace_paths')", 0, 1, 2, 3, 4, 5],
    ['page', 'A working directory may be any directory of the workspace', 6, 7, 8, 9, 10, 11],
    ['page', TOOLS_OF_THE_LIBRARY, ...Array.from({ length: 15 }, (_, index) => 12 + index)],
  ],
}

test('each row of the original is a test or a difference on the page', () => {
  const groups = Object.entries(allWorkspaceCases()).flatMap(([subject, found]) =>
    Object.entries(found).map(([group, rows]) => [`${subject}.${group}`, Object.keys(rows).length] as const),
  )
  const told = groups.map(([group]) => {
    const rows = (ROWS[group] ?? []).flatMap(([, , ...those]) => those)
    const hasAll = (ROWS[group] ?? []).some(([, , ...those]) => those.length === 0)
    return [group, hasAll, [...new Set(rows)].toSorted((one, other) => one - other)]
  })
  const wanted = groups.map(([group, count], index) => {
    const hasAll = told[index]?.[1] === true
    return [group, hasAll, hasAll ? told[index]?.[2] : Array.from({ length: count }, (_, row) => row)]
  })
  expect(told).toEqual(wanted)
  expect(Object.keys(ROWS).toSorted()).toEqual(groups.map(([group]) => group).toSorted())
})

test('each place exists', () => {
  const isThere = ([file, text]: Shown): boolean =>
    file === 'page' ? PAGE.includes(text) : readFileSync(join(ROOT, 'test', file), 'utf8').includes(text)
  expect(Object.values(ROWS).flatMap((places) => places.filter((place) => !isThere(place)))).toEqual([])
})
