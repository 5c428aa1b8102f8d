<?php
// PHP + MariaDB, the receiver that keeps each event's answer and applies the event before it answers.
//
// A request is proven by X-Webhook-Signature: v1=<hex HMAC-SHA256 over X-Webhook-Timestamp, a dot and the raw body>, compared
// in constant time, with a timestamp at most five minutes away; else 401 (signature) or 400 (time). One transaction looks the
// event up with `for update` and writes its key as "processing"; a second one applies it (an upsert of its document, where it
// is newer) and keeps the answer. 200 after that commit; the stored answer for an event that was applied before; 429 while
// another request is at it. It keeps no body, no trace of duplicates and no attempts; if the process dies between the two
// transactions, the key says "processing" for ever.
//
// READ COMMITTED: at MariaDB's default level the locked look-up of a key that is missing locks the gap, and parallel requests
// with rising ids end in deadlocks.
declare(strict_types=1);

function answer(int $status, string $body): never
{
    http_response_code($status);
    header('Content-Type: application/json');
    echo $body;
    exit;
}

$body = file_get_contents('php://input');
$time = $_SERVER['HTTP_X_WEBHOOK_TIMESTAMP'] ?? '';
$right = 'v1=' . hash_hmac('sha256', "$time.$body", $_SERVER['WEBHOOK_SECRET']);
if (!hash_equals($right, $_SERVER['HTTP_X_WEBHOOK_SIGNATURE'] ?? '')) {
    answer(401, '{"error":"wrong signature"}');
}
if (!ctype_digit($time) || abs(time() - (int) $time) > 300) {
    answer(400, '{"error":"wrong time"}');
}
$event = json_decode($body, true, 32, JSON_THROW_ON_ERROR);
$key = $event['event_id'];

$db = new PDO($_SERVER['DATABASE_DSN'], $_SERVER['DATABASE_USER'], $_SERVER['DATABASE_PASSWORD'], [
    PDO::ATTR_PERSISTENT => true,
    PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    PDO::MYSQL_ATTR_INIT_COMMAND => 'set session transaction isolation level read committed',
]);
$run = function (string $sql, array $values) use ($db): PDOStatement {
    $statement = $db->prepare($sql);
    $statement->execute($values);
    return $statement;
};

$db->beginTransaction();
$known = $run(
    'select status, response_code, response_body from webhook_idempotency_keys where idempotency_key = ? for update',
    [$key],
)->fetch(PDO::FETCH_ASSOC);
if ($known && $known['status'] === 'completed') {
    $db->commit();
    answer((int) $known['response_code'], $known['response_body']);
}
if ($known && $known['status'] === 'processing') {
    $db->commit();
    answer(429, '{"error":"in progress"}');
}
try {
    $known
        ? $run("update webhook_idempotency_keys set status = 'processing' where idempotency_key = ?", [$key])
        : $run(
            "insert into webhook_idempotency_keys (idempotency_key, event_type, status) values (?, ?, 'processing')",
            [$key, $event['event_type']],
        );
    $db->commit();
} catch (PDOException $error) {
    $db->rollBack();
    $isTwin = $error->errorInfo[1] === 1062;
    answer($isTwin ? 429 : 500, $isTwin ? '{"error":"in progress"}' : '{"error":"database"}');
}

$done = '{"status":"success","message":"Event processed"}';
try {
    $db->beginTransaction();
    $run(
        'insert into research_documents (entity_id, current_source_version, source_url, source_content_hash, summary, updated_at)
            values (?, ?, ?, ?, ?, now())
            on duplicate key update
                source_url = if(values(current_source_version) > current_source_version, values(source_url), source_url),
                source_content_hash =
                    if(values(current_source_version) > current_source_version, values(source_content_hash), source_content_hash),
                summary = if(values(current_source_version) > current_source_version, values(summary), summary),
                updated_at = if(values(current_source_version) > current_source_version, values(updated_at), updated_at),
                current_source_version = greatest(current_source_version, values(current_source_version))',
        [
            $event['entity']['entity_id'],
            $event['entity']['source_version'],
            $event['source']['url'],
            $event['source']['content_hash'],
            $event['data']['summary'],
        ],
    );
    $run(
        "update webhook_idempotency_keys set status = 'completed', response_code = 200, response_body = ? where idempotency_key = ?",
        [$done, $key],
    );
    $db->commit();
} catch (PDOException $error) {
    $db->rollBack();
    $run("update webhook_idempotency_keys set status = 'failed', response_code = 500 where idempotency_key = ?", [$key]);
    answer(500, '{"error":"database"}');
}
answer(200, $done);
