// What a tool costs a model: our estimate against the counts of a real tokenizer, for every tool of the
// npm servers and for tools of other languages and shapes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { load, npmFolder, npmServer, rialto, tempDir, writeConfig } from './lib.mjs';

const { Tiktoken } = load('js-tiktoken/lite');
const ranks = load('js-tiktoken/ranks/o200k_base');
const tokenizer = new Tiktoken(ranks.default ?? ranks);
const count = ({ name, description, inputSchema }) => tokenizer.encode(JSON.stringify({ name, description, inputSchema })).length;

// The promise: off by at most a quarter above 60 tokens, by at most 15 tokens below.
function compare(tools, least) {
  assert.ok(tools.length >= least, `${tools.length} tools`);
  let all = 0;
  let ours = 0;
  for (const tool of tools) {
    const real = count(tool);
    all += real;
    ours += tool.tokens;
    assert.ok(Math.abs(tool.tokens - real) <= (real > 60 ? real / 4 : 15), `${tool.name}: ${tool.tokens} instead of ${real}`);
  }
  assert.ok(Math.abs(ours - all) <= all / 10, `in all ${ours} instead of ${all}`);
}

const program = (name, args = [], env = {}) => ({ command: path.join(npmFolder, 'node_modules/.bin', name), args, env });

test('the tools of the npm servers', async () => {
  const dir = tempDir();
  const config = writeConfig(dir, {
    names: 'bare',
    servers: {
      everything: npmServer('server-everything', ['stdio']),
      files: npmServer('server-filesystem', [dir]),
      memory: npmServer('server-memory', [], { env: { MEMORY_FILE_PATH: path.join(dir, 'memory.json') } }),
      thinking: npmServer('server-sequential-thinking'),
      tasks: program('mcp-taskmanager', [], { HOME: dir, TASK_MANAGER_FILE_PATH: path.join(dir, 'tasks.json') }),
      runner: program('mcp-server-code-runner'),
      git: program('git-mcp-server', [], { HOME: dir, MCP_TRANSPORT_TYPE: 'stdio', GIT_BASE_DIR: dir, MCP_LOG_LEVEL: 'error', LOGS_DIR: path.join(dir, 'logs') }),
      commands: program('mcp-server-commands'),
      pdf: program('mcp-pdf-server', ['--stdio']),
      budget: program('mcp-budget-allocator-server', ['--stdio']),
      clock: program('mcp-server-basic-vanillajs', ['--stdio']),
    },
  });
  const { stdout, stderr } = await rialto(['tools', '-c', config, '--json'], { timeout: 120_000, env: { PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` } });
  assert.equal(stderr, '');
  compare(JSON.parse(stdout), 80);
});

// --- unusual tools ---

const odd = [];
const schema = (o) => ({ type: 'object', properties: o, required: Object.keys(o).slice(0, 1) });
const tool = (name, description, inputSchema) => odd.push({ name, description, inputSchema });
tool('dateien_suchen', 'Durchsucht alle Dateien im angegebenen Verzeichnis nach einem regulären Ausdruck und gibt die gefundenen Zeilen mit Zeilennummern zurück. Groß- und Kleinschreibung wird standardmäßig nicht beachtet. Überschreitet die Ausgabe die Höchstzahl der Treffer, wird sie gekürzt.', schema({ pfad: { type: 'string', description: 'Verzeichnis, in dem gesucht wird' }, ausdruck: { type: 'string', description: 'Regulärer Ausdruck' } }));
tool('search_notes', '搜索用户的所有笔记，并返回与查询最匹配的结果。结果按相关性排序，每条结果包含标题、摘要和最后修改时间。如果没有找到匹配的笔记，则返回空列表。', schema({ query: { type: 'string', description: '要搜索的关键词或短语' }, limit: { type: 'integer', description: '返回结果的最大数量' } }));
tool('tenki', '指定された都市の現在の天気と今後三日間の予報を返します。気温は摂氏で、降水確率はパーセントで示されます。都市が見つからない場合はエラーになります。', schema({ city: { type: 'string', description: '都市の名前。例えば「東京」や「大阪」' } }));
tool('send_mail', 'Отправляет электронное письмо указанным получателям. Если тема не указана, используется первая строка текста. Вложения передаются в кодировке base64, общий размер не должен превышать десяти мегабайт.', schema({ to: { type: 'array', items: { type: 'string' }, description: 'Адреса получателей' }, body: { type: 'string', description: 'Текст письма' } }));
tool('buscar_vuelos', 'Busca vuelos disponibles entre dos ciudades en la fecha indicada y devuelve los precios ordenados de menor a mayor. Incluye la duración del viaje, el número de escalas y la compañía aérea.', schema({ origen: { type: 'string', description: 'Código IATA del aeropuerto de salida' }, destino: { type: 'string' }, fecha: { type: 'string', format: 'date' } }));
tool('translate', 'يترجم النص المعطى إلى اللغة المطلوبة ويعيد الترجمة مع درجة الثقة. إذا لم تُحدد لغة المصدر فسيتم اكتشافها تلقائيا.', schema({ text: { type: 'string', description: 'النص المراد ترجمته' } }));
tool('hindi', 'दिए गए शहर के लिए ट्रेन की समय सारणी खोजता है और सभी उपलब्ध ट्रेनों की सूची लौटाता है। तारीख न दी जाए तो आज की तारीख मानी जाती है।', schema({ city: { type: 'string', description: 'शहर का नाम' } }));
tool('korean', '사용자의 일정에서 지정된 기간의 모든 약속을 찾아 시작 시간 순서로 반환합니다. 기간을 지정하지 않으면 오늘의 일정을 반환합니다.', schema({ from: { type: 'string', description: '시작 날짜' } }));
tool('emoji', '🚀 Deploys the site ✅ and tells you what happened 🎉. Use it when tests pass 🧪; never on Fridays 🙅‍♀️. Rollback with ⏪.', schema({ env: { type: 'string', enum: ['🟢 prod', '🟡 staging'] } }));
let deep = { type: 'string', description: 'the leaf' };
for (let i = 20; i > 0; i--) deep = { type: 'object', properties: { ['level' + i]: deep }, required: ['level' + i], additionalProperties: false };
tool('deep_tree', 'A deep schema.', { type: 'object', properties: { tree: deep } });
tool('query_database', 'Runs SQL.', schema({ q: { type: 'string', pattern: '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' }, id: { type: 'string', pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$', examples: ['550e8400-e29b-41d4-a716-446655440000', '6ba7b810-9dad-11d1-80b4-00c04fd430c8'] } }));
tool('enumerated', 'Picks a currency.', schema({ currency: { type: 'string', enum: 'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD'.split(' ') } }));
tool('camelCaseThing', 'getUserAccountDetailsByOrganizationIdentifier wraps fetchOrganizationMembershipRecordsFromUpstream.', schema({ organizationIdentifier: { type: 'string' }, includeDeactivatedMembers: { type: 'boolean', default: false }, pageSizeLimit: { type: 'integer', minimum: 1, maximum: 1000000, default: 2500 } }));
tool('many_lines', 'Use this tool to:\n\n- list files\n- read files\n    - with offset\n    - with limit\n\nExamples:\n\n```json\n{"path": "/tmp/x", "limit": 10}\n```\n\n**Important:** never use it for directories!\n\n| a | b |\n|---|---|\n| 1 | 2 |\n', schema({ path: { type: 'string' } }));
tool('numbers', 'Numbers.', schema({ n: { type: 'number', enum: [1, 22, 333, 4444, 55555, 666666, 7777777, 3.14159265358979, 2.718281828, 1e-9, 0.000001, 123456789012] } }));
tool('greek', 'Επιστρέφει τη λίστα των διαθέσιμων προϊόντων σε μια κατηγορία, ταξινομημένα κατά τιμή. Αν δεν οριστεί κατηγορία, επιστρέφονται όλα.', schema({ c: { type: 'string', description: 'Κατηγορία προϊόντων' } }));
tool('thai', 'ค้นหาร้านอาหารที่อยู่ใกล้ตำแหน่งที่ระบุ และแสดงรายการพร้อมคะแนนรีวิวและระยะทาง', schema({ c: { type: 'string', description: 'ประเภทอาหาร' } }));
tool('vietnam', 'Tìm kiếm các sản phẩm theo tên và trả về danh sách kết quả được sắp xếp theo giá tăng dần, kèm theo số lượng còn lại trong kho.', schema({ ten: { type: 'string', description: 'Tên sản phẩm' } }));
tool('polish', 'Zwraca listę zamówień złożonych przez klienta w podanym przedziale czasu, wraz z ich stanem, kwotą oraz adresem dostawy. Wyniki są posortowane malejąco według daty złożenia.', schema({ klient: { type: 'string', description: 'Identyfikator klienta' } }));
tool('hebrew', 'מחזיר את רשימת ההזמנות של הלקוח בטווח התאריכים שצוין, ממוינת לפי תאריך. אם לא צוין טווח, יוחזרו כל ההזמנות.', schema({ c: { type: 'string', description: 'מזהה הלקוח' } }));
tool('turkish', 'Belirtilen müşterinin siparişlerini verilen tarih aralığında listeler; sonuçlar tarihe göre azalan sırada döndürülür ve her siparişin durumu gösterilir.', schema({ c: { type: 'string', description: 'Müşteri numarası' } }));
tool('finnish', 'Palauttaa luettelon asiakkaan tekemistä tilauksista annetulla aikavälillä sekä niiden tilan, summan ja toimitusosoitteen. Tulokset järjestetään laskevasti tilauspäivän mukaan.', schema({ asiakas: { type: 'string', description: 'Asiakkaan tunniste' } }));
tool('hungarian', 'Visszaadja az ügyfél által a megadott időszakban leadott rendelések listáját, azok állapotát, összegét és szállítási címét. Az eredmények dátum szerint csökkenő sorrendben vannak.', schema({ ugyfel: { type: 'string', description: 'Az ügyfél azonosítója' } }));
tool('french', "Renvoie la liste des commandes passées par le client pendant la période indiquée, avec leur état, leur montant et l'adresse de livraison. Les résultats sont triés par date décroissante.", schema({ client: { type: 'string', description: 'Identifiant du client' } }));
tool('portuguese', 'Retorna a lista de pedidos feitos pelo cliente no período indicado, com a situação, o valor e o endereço de entrega. Os resultados são ordenados por data decrescente.', schema({ cliente: { type: 'string', description: 'Identificador do cliente' } }));
tool('indonesian', 'Mengembalikan daftar pesanan yang dibuat oleh pelanggan dalam rentang waktu tertentu, beserta status, jumlah, dan alamat pengiriman. Hasil diurutkan menurut tanggal secara menurun.', schema({ pelanggan: { type: 'string', description: 'Pengenal pelanggan' } }));
tool('italian', "Restituisce l'elenco degli ordini effettuati dal cliente nel periodo indicato, con stato, importo e indirizzo di consegna. I risultati sono ordinati per data decrescente.", schema({ cliente: { type: 'string', description: 'Identificativo del cliente' } }));

test('other languages, deep schemas, patterns, numbers; JSON with blanks and escapes', async () => {
  const file = path.join(tempDir(), 'odd.mjs');
  // As another server would write it: spaces between the tokens, \u escapes in the texts.
  const listed = JSON.stringify(odd, null, 1).replaceAll('\n', ' ').replaceAll(/[\u0400-\u04ff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  fs.writeFileSync(file, `
import readline from 'node:readline';
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const m = JSON.parse(line);
  const answer = (text) => process.stdout.write('{"jsonrpc":"2.0","id":' + JSON.stringify(m.id) + ',"result":' + text + '}\\n');
  if (m.method === 'initialize') answer(JSON.stringify({ protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } }));
  if (m.method === 'tools/list') answer('{"tools":' + ${JSON.stringify(listed)} + '}');
});`);
  const config = writeConfig(tempDir(), { names: 'bare', servers: { odd: { command: process.execPath, args: [file], era: 'legacy' } } });
  const { stdout, stderr } = await rialto(['tools', '-c', config, '--json']);
  assert.equal(stderr, '');
  compare(JSON.parse(stdout), odd.length);
});
