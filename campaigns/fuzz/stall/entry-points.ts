import { DISPLAY_ENTRY_POINTS } from './displays.ts'
import type { EntryPoint } from './entry-point.ts'
import { FILE_ENTRY_POINTS } from './files.ts'
import { HTTP_ENTRY_POINTS } from './http.ts'
import { JOURNAL_ENTRY_POINTS } from './journals.ts'
import { MCP_ENTRY_POINTS } from './mcp-server.ts'
import { MODEL_ENTRY_POINTS } from './model.ts'
import { SANDBOX_ENTRY_POINTS } from './sandbox.ts'
import { SCRIPT_ENTRY_POINTS } from './script.ts'
import { TOOL_ENTRY_POINTS } from './tools.ts'
import { WEB_SOCKET_ENTRY_POINTS } from './web-socket.ts'

/** Every way for hostile bytes into the host. */
export const ENTRY_POINTS: readonly EntryPoint[] = [
  ...MODEL_ENTRY_POINTS,
  ...HTTP_ENTRY_POINTS,
  ...SCRIPT_ENTRY_POINTS,
  ...FILE_ENTRY_POINTS,
  ...DISPLAY_ENTRY_POINTS,
  ...SANDBOX_ENTRY_POINTS,
  ...TOOL_ENTRY_POINTS,
  ...WEB_SOCKET_ENTRY_POINTS,
  ...MCP_ENTRY_POINTS,
  ...JOURNAL_ENTRY_POINTS,
]
