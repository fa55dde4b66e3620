-- What release 514c2a3 has made: a database that its migrate and some trade have filled, by
-- pg_dump --inserts --no-owner --no-privileges, without settings and comments on columns.
CREATE EXTENSION IF NOT EXISTS btree_gin WITH SCHEMA public;
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
CREATE TABLE public.adjustment_proposals (
    id uuid NOT NULL,
    "position" bigint NOT NULL
);
CREATE TABLE public.api_clients (
    client_id character varying NOT NULL,
    organization_id uuid,
    scopes character varying NOT NULL,
    secret_hashes character varying NOT NULL,
    revoked boolean NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.audit_tiles (
    number bigint NOT NULL,
    first_position bigint NOT NULL,
    positions bytea NOT NULL,
    leaves bytea NOT NULL,
    root bytea
);
CREATE TABLE public.checkpoints (
    number integer NOT NULL,
    "position" bigint NOT NULL,
    made_at bigint NOT NULL,
    note character varying NOT NULL,
    delivered_at bigint
);
CREATE SEQUENCE public.checkpoints_number_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.checkpoints_number_seq OWNED BY public.checkpoints.number;
CREATE TABLE public.closed_months (
    month character varying NOT NULL,
    "position" bigint NOT NULL
);
CREATE TABLE public.installation_notes (
    subject character varying NOT NULL,
    at bigint NOT NULL,
    value character varying NOT NULL
);
CREATE VIEW public.finance_audits AS
 SELECT ('1970-01-01 00:00:00+00'::timestamp with time zone + ((e.at)::double precision * '00:00:00.000001'::interval)) AS at,
    ((e.state #>> '{events}'::text[]))::bigint AS events,
    (e.state #>> '{failures}'::text[]) AS failures
   FROM ( SELECT installation_notes.at,
            (installation_notes.value)::json AS state
           FROM public.installation_notes
          WHERE ((installation_notes.subject)::text = 'audit'::text)) e;
COMMENT ON VIEW public.finance_audits IS 'What the audit of the night has found. (e17c09b7f2d5)';
CREATE VIEW public.finance_checkpoints AS
 SELECT (c.number)::bigint AS number,
    c."position",
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((c.made_at)::double precision * '00:00:00.000001'::interval)) AS made_at,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((c.delivered_at)::double precision * '00:00:00.000001'::interval)) AS delivered_at,
    c.note
   FROM public.checkpoints c;
COMMENT ON VIEW public.finance_checkpoints IS 'What was signed of the log, and when it reached the place that keeps it. (53f20cc85e69)';
CREATE TABLE public.log_events (
    originator_id uuid NOT NULL,
    originator_version bigint NOT NULL,
    topic text,
    state bytea,
    notification_id bigint NOT NULL
)
WITH (autovacuum_enabled='true', autovacuum_vacuum_threshold='100000000', autovacuum_vacuum_scale_factor='0.5', autovacuum_analyze_threshold='1000', autovacuum_analyze_scale_factor='0.01');
CREATE VIEW public.finance_costs AS
 SELECT w."position",
    w.at,
    w.organization_id,
    w.work,
    w.provider,
    w.count,
    ((w.cost)::numeric * 0.000001) AS cost,
    w.currency,
    w.estimated,
    w.reference,
    w.cost AS cost_micros
   FROM ( SELECT e."position",
            ((e.state #>> '{timestamp}'::text[]))::timestamp with time zone AS at,
            ((e.state #>> '{organization_id}'::text[]))::uuid AS organization_id,
            'lookup'::text AS work,
            (e.state #>> '{provider}'::text[]) AS provider,
            1 AS count,
            ((e.state #>> '{cost,amount_micros}'::text[]))::bigint AS cost,
            (e.state #>> '{cost,currency}'::text[]) AS currency,
                CASE
                    WHEN (((e.state #>> '{cost,amount_micros}'::text[]))::bigint IS NOT NULL) THEN COALESCE(((e.state #>> '{cost,estimated}'::text[]))::boolean, true)
                    ELSE NULL::boolean
                END AS estimated,
            (e.state #>> '{cost,reference}'::text[]) AS reference
           FROM ( SELECT l.notification_id AS "position",
                    l.originator_id AS stream,
                    l.originator_version AS version,
                    l.topic,
                    s.state
                   FROM (public.log_events l
                     CROSS JOIN LATERAL ( SELECT (convert_from(l.state, 'UTF8'::name))::jsonb AS state
                         OFFSET 0) s)) e
          WHERE ((e.topic = 'number_lookup.answered'::text) AND ((e.state #>> '{source}'::text[]) = 'live'::text))
        UNION ALL
         SELECT e."position",
            ((e.state #>> '{timestamp}'::text[]))::timestamp with time zone AS at,
            ((e.state #>> '{organization_id}'::text[]))::uuid AS organization_id,
                CASE e.topic
                    WHEN 'link.plan_added'::text THEN 'topup'::text
                    WHEN 'link.activated'::text THEN 'activation'::text
                    ELSE 'left_over'::text
                END AS "case",
            COALESCE((e.state #>> '{plan,network}'::text[]), 'simulated'::text) AS "coalesce",
            1,
            ((e.state #>> '{cost,amount_micros}'::text[]))::bigint AS cost,
            (e.state #>> '{cost,currency}'::text[]) AS currency,
                CASE
                    WHEN (((e.state #>> '{cost,amount_micros}'::text[]))::bigint IS NOT NULL) THEN COALESCE(((e.state #>> '{cost,estimated}'::text[]))::boolean, true)
                    ELSE NULL::boolean
                END AS estimated,
            (e.state #>> '{cost,reference}'::text[]) AS reference
           FROM ( SELECT l.notification_id AS "position",
                    l.originator_id AS stream,
                    l.originator_version AS version,
                    l.topic,
                    s.state
                   FROM (public.log_events l
                     CROSS JOIN LATERAL ( SELECT (convert_from(l.state, 'UTF8'::name))::jsonb AS state
                         OFFSET 0) s)) e
          WHERE ((e.topic = ANY (ARRAY['link.activated'::text, 'link.plan_added'::text, 'lost_order.left_over'::text, 'link.plan_left_over'::text, 'link.endpoint_left_over'::text])) AND ((e.state #>> '{bought_at}'::text[]) IS NULL) AND (COALESCE(((e.state #>> '{attempt}'::text[]))::bigint, (1)::bigint) = 1))
        UNION ALL
         SELECT e."position",
            ((e.state #>> '{timestamp}'::text[]))::timestamp with time zone AS at,
            ((e.state #>> '{organization_id}'::text[]))::uuid AS organization_id,
            'bulk_lookup'::text,
            (a.value #>> '{provider}'::text[]),
            ((a.value #>> '{count}'::text[]))::bigint AS int8,
            ((a.value #>> '{cost,amount_micros}'::text[]))::bigint AS cost,
            (a.value #>> '{cost,currency}'::text[]) AS currency,
                CASE
                    WHEN (((a.value #>> '{cost,amount_micros}'::text[]))::bigint IS NOT NULL) THEN COALESCE(((a.value #>> '{cost,estimated}'::text[]))::boolean, true)
                    ELSE NULL::boolean
                END AS estimated,
            (a.value #>> '{cost,reference}'::text[]) AS reference
           FROM ( SELECT l.notification_id AS "position",
                    l.originator_id AS stream,
                    l.originator_version AS version,
                    l.topic,
                    s.state
                   FROM (public.log_events l
                     CROSS JOIN LATERAL ( SELECT (convert_from(l.state, 'UTF8'::name))::jsonb AS state
                         OFFSET 0) s)) e,
            LATERAL jsonb_array_elements((e.state -> 'asked'::text)) a(value)
          WHERE (e.topic = 'bulk_job.items_completed'::text)
        UNION ALL
         SELECT e."position",
            ((e.state #>> '{timestamp}'::text[]))::timestamp with time zone AS at,
            ((e.state #>> '{organization_id}'::text[]))::uuid AS organization_id,
            'bulk_lookup'::text,
            NULL::text,
            jsonb_array_length((e.state -> 'indexes'::text)) AS jsonb_array_length,
            NULL::bigint,
            NULL::text,
            NULL::boolean,
            NULL::text
           FROM ( SELECT l.notification_id AS "position",
                    l.originator_id AS stream,
                    l.originator_version AS version,
                    l.topic,
                    s.state
                   FROM (public.log_events l
                     CROSS JOIN LATERAL ( SELECT (convert_from(l.state, 'UTF8'::name))::jsonb AS state
                         OFFSET 0) s)) e
          WHERE ((e.topic = 'bulk_job.items_completed'::text) AND (jsonb_array_length((e.state -> 'asked'::text)) IS NULL))) w;
COMMENT ON VIEW public.finance_costs IS 'What providers have done and take for it, from the log itself: filter by position. (1fc89314651f)';
CREATE TABLE public.organizations (
    id uuid NOT NULL,
    name character varying NOT NULL,
    status character varying NOT NULL,
    price_micros bigint,
    monthly_link_fee_micros bigint NOT NULL,
    lookup_enabled boolean NOT NULL,
    created_at bigint NOT NULL,
    low_balance_threshold_micros bigint,
    rate_limit_per_minute bigint,
    spending_limit_micros bigint
);
CREATE TABLE public.transaction_hours (
    organization_id uuid NOT NULL,
    kind character varying NOT NULL,
    hour bigint NOT NULL,
    count bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    debit_micros bigint NOT NULL,
    credit_micros bigint NOT NULL
);
CREATE VIEW public.finance_daily AS
 SELECT h.organization_id,
    o.name AS organization,
    ('1970-01-01'::date + ((h.hour / 24))::integer) AS day,
    h.kind,
    (sum(h.count))::bigint AS transactions,
    (sum(h.debit_micros) * 0.000001) AS debit,
    (sum(h.credit_micros) * 0.000001) AS credit,
    ((sum(h.credit_micros) - sum(h.debit_micros)) * 0.000001) AS net,
    min(h.first) AS first_sequence,
    max(h.last) AS last_sequence,
    (sum(h.debit_micros))::bigint AS debit_micros,
    (sum(h.credit_micros))::bigint AS credit_micros,
    ((sum(h.credit_micros) - sum(h.debit_micros)))::bigint AS net_micros
   FROM (public.transaction_hours h
     LEFT JOIN public.organizations o ON ((o.id = h.organization_id)))
  WHERE (h.organization_id <> '00000000-0000-0000-0000-000000000000'::uuid)
  GROUP BY h.organization_id, o.name, (h.hour / 24), h.kind;
COMMENT ON VIEW public.finance_daily IS 'Sums of entries by organization, day and kind. Always name an organization_id. (7889572821f8)';
CREATE VIEW public.finance_events AS
 SELECT e."position",
    e.stream,
    e.version,
    e.topic,
    ((e.state #>> '{timestamp}'::text[]))::timestamp with time zone AS at,
    ((e.state #>> '{organization_id}'::text[]))::uuid AS organization_id,
    (e.state #>> '{request_id}'::text[]) AS request_id,
    (e.state #>> '{actor}'::text[]) AS actor,
    COALESCE((e.state #>> '{endpoint_id}'::text[]), (e.state #>> '{addon_id}'::text[])) AS provider_reference,
    COALESCE((e.state #>> '{reason}'::text[]), (e.state #>> '{code}'::text[])) AS reason
   FROM ( SELECT log_events.notification_id AS "position",
            log_events.originator_id AS stream,
            log_events.originator_version AS version,
            log_events.topic,
            (convert_from(log_events.state, 'UTF8'::name))::json AS state
           FROM public.log_events) e;
COMMENT ON VIEW public.finance_events IS 'Every event of the log, without what it holds but for these facts. Filter by position, or by stream. (ec0f806e9bf3)';
CREATE TABLE public.statement_lines (
    organization_id uuid NOT NULL,
    month character varying NOT NULL,
    kind character varying NOT NULL,
    currency character varying NOT NULL,
    opening_micros bigint NOT NULL,
    closing_micros bigint NOT NULL,
    first_sequence bigint NOT NULL,
    last_sequence bigint NOT NULL,
    first_position bigint NOT NULL,
    last_position bigint NOT NULL,
    count bigint NOT NULL,
    debit_micros bigint NOT NULL,
    credit_micros bigint NOT NULL
);
CREATE VIEW public.finance_statement_lines AS
 SELECT l.organization_id,
    o.name AS organization,
    l.month,
    l.kind,
    l.count AS transactions,
    ((l.debit_micros)::numeric * 0.000001) AS debit,
    ((l.credit_micros)::numeric * 0.000001) AS credit,
    l.debit_micros,
    l.credit_micros
   FROM (public.statement_lines l
     LEFT JOIN public.organizations o ON ((o.id = l.organization_id)));
COMMENT ON VIEW public.finance_statement_lines IS 'The statements by kind of entry. (83539b93f88e)';
CREATE VIEW public.finance_statements AS
 SELECT m.organization_id,
    o.name AS organization,
    m.month,
    m.currency,
    ((f.opening_micros)::numeric * 0.000001) AS opening_balance,
    (m.debit * 0.000001) AS debit,
    (m.credit * 0.000001) AS credit,
    ((l.closing_micros)::numeric * 0.000001) AS closing_balance,
    (m.transactions)::bigint AS transactions,
    m.first_sequence,
    m.last_sequence,
    m.first_position,
    m.last_position,
    c."position" AS closed_position,
    f.opening_micros AS opening_balance_micros,
    (m.debit)::bigint AS debit_micros,
    (m.credit)::bigint AS credit_micros,
    l.closing_micros AS closing_balance_micros
   FROM ((((( SELECT statement_lines.organization_id,
            statement_lines.month,
            statement_lines.currency,
            sum(statement_lines.count) AS transactions,
            sum(statement_lines.debit_micros) AS debit,
            sum(statement_lines.credit_micros) AS credit,
            min(statement_lines.first_sequence) AS first_sequence,
            max(statement_lines.last_sequence) AS last_sequence,
            min(statement_lines.first_position) AS first_position,
            max(statement_lines.last_position) AS last_position
           FROM public.statement_lines
          GROUP BY statement_lines.organization_id, statement_lines.month, statement_lines.currency) m
     JOIN public.statement_lines f ON (((f.organization_id = m.organization_id) AND ((f.month)::text = (m.month)::text) AND (f.first_sequence = m.first_sequence))))
     JOIN public.statement_lines l ON (((l.organization_id = m.organization_id) AND ((l.month)::text = (m.month)::text) AND (l.last_sequence = m.last_sequence))))
     LEFT JOIN public.closed_months c ON (((c.month)::text = (m.month)::text)))
     LEFT JOIN public.organizations o ON ((o.id = m.organization_id)));
COMMENT ON VIEW public.finance_statements IS 'One row per wallet and month in which it has an entry; a month without one keeps the balance. (d6d662707229)';
CREATE VIEW public.finance_totals AS
 SELECT ('1970-01-01'::date + ((h.hour / 24))::integer) AS day,
    h.kind,
    (sum(h.count))::bigint AS transactions,
    (sum(h.debit_micros) * 0.000001) AS debit,
    (sum(h.credit_micros) * 0.000001) AS credit,
    ((sum(h.credit_micros) - sum(h.debit_micros)) * 0.000001) AS net,
    min(h.first) AS first_position,
    max(h.last) AS last_position,
    (sum(h.debit_micros))::bigint AS debit_micros,
    (sum(h.credit_micros))::bigint AS credit_micros,
    ((sum(h.credit_micros) - sum(h.debit_micros)))::bigint AS net_micros
   FROM public.transaction_hours h
  WHERE (h.organization_id = '00000000-0000-0000-0000-000000000000'::uuid)
  GROUP BY (h.hour / 24), h.kind;
COMMENT ON VIEW public.finance_totals IS 'Sums of the entries of all wallets by day and kind; net, added up from the first day on, is what all wallets hold. (92da6f4e04e2)';
CREATE TABLE public.transactions (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    sequence bigint NOT NULL,
    "position" bigint NOT NULL,
    kind character varying NOT NULL,
    direction character varying NOT NULL,
    amount_micros bigint NOT NULL,
    balance_micros bigint NOT NULL,
    currency character varying NOT NULL,
    charged_at bigint NOT NULL,
    description character varying NOT NULL,
    reference_type character varying NOT NULL,
    reference_id character varying NOT NULL,
    metadata character varying NOT NULL,
    refund_of uuid,
    reason character varying
);
CREATE VIEW public.finance_transactions AS
 SELECT t."position",
    t.id,
    t.organization_id,
    o.name AS organization,
    t.sequence,
    t.kind,
    t.direction,
    ((t.amount_micros)::numeric * 0.000001) AS amount,
    ((
        CASE t.direction
            WHEN 'debit'::text THEN (- t.amount_micros)
            ELSE t.amount_micros
        END)::numeric * 0.000001) AS change,
    ((t.balance_micros)::numeric * 0.000001) AS balance_after,
    t.currency,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((t.charged_at)::double precision * '00:00:00.000001'::interval)) AS charged_at,
    t.description,
    t.reference_type,
    t.reference_id,
    t.metadata,
    t.refund_of,
    t.reason,
    t.charged_at AS charged_at_micros,
    t.amount_micros,
        CASE t.direction
            WHEN 'debit'::text THEN (- t.amount_micros)
            ELSE t.amount_micros
        END AS change_micros,
    t.balance_micros AS balance_after_micros
   FROM (public.transactions t
     LEFT JOIN public.organizations o ON ((o.id = t.organization_id)));
COMMENT ON VIEW public.finance_transactions IS 'One row per entry of a wallet. Filter large installations by organization_id and sequence, or by kind and position: these have indexes. (c2060856ec3c)';
CREATE TABLE public.wallets (
    organization_id uuid NOT NULL,
    currency character varying NOT NULL,
    balance_micros bigint NOT NULL,
    sequence bigint NOT NULL
);
CREATE VIEW public.finance_wallets AS
 SELECT w.organization_id,
    o.name AS organization,
    o.status,
    w.currency,
    ((w.balance_micros)::numeric * 0.000001) AS balance,
    w.sequence AS transactions,
    w.balance_micros
   FROM (public.wallets w
     LEFT JOIN public.organizations o ON ((o.id = w.organization_id)));
COMMENT ON VIEW public.finance_wallets IS 'One row per wallet, as it is now. (c1478a680757)';
CREATE TABLE public.follower_positions (
    name character varying NOT NULL,
    version integer NOT NULL,
    "position" bigint NOT NULL,
    stream_id uuid,
    stream_version integer NOT NULL,
    caught_up_at bigint,
    failure character varying,
    failed_at bigint
);
CREATE TABLE public.job_counts (
    organization_id uuid NOT NULL,
    month character varying NOT NULL,
    pending bigint NOT NULL,
    processing bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL
);
CREATE TABLE public.job_settlements (
    job_id uuid NOT NULL,
    "position" bigint NOT NULL,
    indexes character varying NOT NULL,
    errors character varying,
    month character varying,
    box bytea
);
CREATE TABLE public.jobs (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    "position" bigint NOT NULL,
    status character varying NOT NULL,
    total_count integer NOT NULL,
    completed_count integer NOT NULL,
    failed_count integer NOT NULL,
    cancelled_count integer NOT NULL,
    item_price_micros bigint NOT NULL,
    currency character varying,
    transaction_id uuid,
    by_hand_micros bigint NOT NULL,
    created_at bigint NOT NULL,
    moved_at bigint NOT NULL,
    finished_at bigint,
    month character varying NOT NULL,
    box bytea NOT NULL
);
CREATE TABLE public.leases (
    key uuid NOT NULL,
    holder uuid NOT NULL,
    fingerprint character varying NOT NULL,
    until bigint NOT NULL
);
CREATE TABLE public.link_activations (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    link_id uuid NOT NULL,
    "position" bigint NOT NULL,
    plan character varying NOT NULL,
    addon_id character varying,
    bought_at bigint NOT NULL,
    removed_at bigint,
    folded_plan_name character varying NOT NULL
);
CREATE TABLE public.link_counts (
    organization_id uuid NOT NULL,
    active bigint NOT NULL,
    suspended bigint NOT NULL,
    inactive bigint NOT NULL,
    ended bigint NOT NULL
);
CREATE TABLE public.link_plan_names (
    organization_id uuid NOT NULL,
    folded_name character varying NOT NULL
);
CREATE TABLE public.link_spans (
    link_id uuid NOT NULL,
    "position" bigint NOT NULL,
    organization_id uuid NOT NULL,
    from_at bigint NOT NULL,
    until_at bigint
);
CREATE TABLE public.link_timelines (
    link_id uuid NOT NULL,
    "position" bigint NOT NULL,
    at bigint NOT NULL,
    what character varying NOT NULL,
    facts character varying NOT NULL
);
CREATE TABLE public.links (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    "position" bigint NOT NULL,
    iccid character varying NOT NULL,
    name character varying,
    status character varying NOT NULL,
    sponsor_profile character varying,
    created_at bigint NOT NULL,
    lpa_month character varying,
    lpa_box bytea,
    installed_at bigint,
    first_used_at bigint,
    number bigint NOT NULL,
    texts character varying NOT NULL
);
CREATE SEQUENCE public.log_events_notification_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.log_events_notification_id_seq OWNED BY public.log_events.notification_id;
CREATE TABLE public.log_events_servers (
    place text NOT NULL,
    life uuid DEFAULT gen_random_uuid() NOT NULL
);
CREATE TABLE public.lookup_cache (
    organization_id uuid NOT NULL,
    phone_number character varying NOT NULL,
    as_of bigint NOT NULL,
    answer bytea NOT NULL
);
CREATE TABLE public.monthly_fees (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    month character varying NOT NULL,
    link_count integer NOT NULL,
    fee_micros bigint NOT NULL,
    currency character varying NOT NULL,
    due_at bigint NOT NULL,
    charged_at bigint
);
CREATE TABLE public.network_number_parts (
    organization_id uuid NOT NULL,
    part character varying NOT NULL COLLATE pg_catalog."C",
    link_id uuid NOT NULL
);
CREATE TABLE public.network_readings (
    link_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    msisdn character varying,
    usage bytea,
    usage_as_of bigint,
    status bytea,
    status_as_of bigint
);
CREATE TABLE public.open_items (
    organization_id uuid NOT NULL,
    open_count bigint NOT NULL
);
CREATE TABLE public.open_slices (
    job_id uuid NOT NULL,
    slice_index integer NOT NULL,
    organization_id uuid NOT NULL,
    "position" bigint NOT NULL,
    open_count integer NOT NULL
);
CREATE TABLE public.personal_keys (
    organization_id uuid NOT NULL,
    month character varying NOT NULL,
    key bytea
);
CREATE TABLE public.plan_countries (
    plan_id uuid NOT NULL,
    country_code character varying NOT NULL
);
CREATE TABLE public.plan_exclusions (
    plan_id uuid NOT NULL,
    organization_id uuid NOT NULL
);
CREATE TABLE public.plan_sponsor_profiles (
    plan_id uuid NOT NULL,
    profile_id character varying NOT NULL,
    name character varying NOT NULL
);
CREATE TABLE public.plans (
    id uuid NOT NULL,
    organization_id uuid,
    provider_plan_id character varying,
    name character varying NOT NULL COLLATE pg_catalog."C",
    coverage_type character varying NOT NULL,
    enabled boolean NOT NULL,
    terms character varying NOT NULL
);
CREATE TABLE public.provider_paces (
    provider character varying NOT NULL,
    next_at bigint NOT NULL
);
CREATE TABLE public.rate_limits (
    organization_id uuid NOT NULL,
    minute bigint NOT NULL,
    taken bigint NOT NULL
);
CREATE TABLE public.reading_turns (
    link_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    network character varying NOT NULL,
    "position" bigint NOT NULL,
    due_at bigint NOT NULL,
    answered_at bigint NOT NULL,
    ends_at bigint
);
CREATE TABLE public.refund_reasons (
    transaction_id uuid NOT NULL,
    reason character varying NOT NULL
);
CREATE TABLE public.sandbox_attempts (
    organization_id uuid NOT NULL,
    phone_number character varying NOT NULL,
    attempts integer NOT NULL
);
CREATE TABLE public.schema_versions (
    name character varying NOT NULL,
    version integer NOT NULL
);
CREATE TABLE public.simulated_clock (
    id integer NOT NULL,
    ahead bigint NOT NULL
);
CREATE TABLE public.simulated_endpoints (
    endpoint_id character varying NOT NULL,
    iccid character varying NOT NULL,
    is_removed boolean NOT NULL,
    document bytea NOT NULL
);
CREATE TABLE public.simulated_esims (
    iccid character varying NOT NULL,
    sponsor_profile_id character varying NOT NULL,
    serial integer NOT NULL,
    is_free boolean NOT NULL
);
CREATE TABLE public.slices_in_hand (
    job_id uuid NOT NULL,
    slice_index integer NOT NULL,
    organization_id uuid NOT NULL,
    holder uuid,
    until bigint NOT NULL
);
CREATE TABLE public.throttle (
    subject character varying NOT NULL,
    failures integer NOT NULL,
    ends bigint NOT NULL
);
CREATE TABLE public.transaction_links (
    link_id uuid NOT NULL,
    transaction_id uuid NOT NULL
);
CREATE TABLE public.unfinished (
    id uuid NOT NULL,
    kind character varying NOT NULL,
    begun_at bigint NOT NULL,
    due_at bigint NOT NULL
);
CREATE TABLE public.usage (
    organization_id uuid NOT NULL,
    day character varying NOT NULL,
    kind character varying NOT NULL,
    plan_id character varying NOT NULL,
    plan_name character varying NOT NULL,
    charges bigint NOT NULL,
    charged_micros bigint NOT NULL,
    refunds bigint NOT NULL,
    refunded_micros bigint NOT NULL
);
CREATE TABLE public.webhook_deliveries (
    id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    about uuid NOT NULL,
    "position" bigint NOT NULL,
    type character varying NOT NULL,
    body bytea NOT NULL,
    created_at bigint NOT NULL,
    status character varying NOT NULL,
    attempts integer NOT NULL,
    retries integer NOT NULL,
    next_attempt_at bigint,
    attempted_at bigint,
    response_status integer,
    duration_ms integer,
    error character varying,
    taken_until bigint
);
CREATE TABLE public.webhook_endpoints (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    created_at bigint NOT NULL,
    events character varying,
    disabled character varying,
    since bigint NOT NULL,
    is_deleted boolean NOT NULL,
    changed_position bigint NOT NULL
);
CREATE TABLE public.webhook_health (
    endpoint_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    failures integer NOT NULL,
    failing_since bigint,
    paused_until bigint
);
ALTER TABLE ONLY public.checkpoints ALTER COLUMN number SET DEFAULT nextval('public.checkpoints_number_seq'::regclass);
ALTER TABLE ONLY public.log_events ALTER COLUMN notification_id SET DEFAULT nextval('public.log_events_notification_id_seq'::regclass);
INSERT INTO public.api_clients VALUES ('cl_a93089358f5c4b0e922c2fc5', '70d795b9-917f-4e1f-b91d-1164423c8b5f', '["lookup","plans","links","wallet"]', '["0000000000000000000000000000000000000000000000000000000000000000"]', false, 1772366400000000);
INSERT INTO public.api_clients VALUES ('cl_73b34708be904b20a97ef705', NULL, '["lookup","plans","links","wallet"]', '["0.13657852434493012","0000000000000000000000000000000000000000000000000000000000000000"]', false, 1772366400000000);
INSERT INTO public.audit_tiles VALUES (0, 1, '\x000000000000000100000000000000020000000000000003000000000000000400000000000000050000000000000006000000000000000700000000000000080000000000000009000000000000000a000000000000000b000000000000000c000000000000000d000000000000000e000000000000000f000000000000001000000000000000110000000000000012000000000000001300000000000000140000000000000015000000000000001600000000000000170000000000000018', '\x34c7eb593d9a9ce276ad25f433fdda733c66c68763c35deead064b04bf0c800a0a816715aee5e67d682a243b9be85708cf964bffb8da4a1517c838e2dc6862c482e996749658b32ed4d35c79bbc6c52a31cc621628326ec3e38b49978c9bbb5756775cf6662005db30863b11702be56a0defdd42d2c7288074693dc8adbc8bde25031cd169255fe63da587f1389356dc1434868101fa112c11943fd977a9051be46eb1b872ef1887ed8c69a07a58a43d70f0fc32f0cc875217c04bc2d9a3c1ebbce30dde26ce6a6cfb82deaef6e924ce664e23e2e02aedb2086bec197e5c91fd55ee971ea84a41a5000f44d67ce3fcee493b6a67579c3cc2f1aa8d17f3cefc31ae7150a68600213bd0fbc487c293aa7ecbd532687f5735e637a92d378f75ab5523f2cbb9eb73293c9d094e0f53c6019e44ffec611a0a3a397a03ecf70b62ad5d28fe7b642489d1a5ca5d5f179f13d9d8235d18243af2dd27ba58ff17e991c04c4d41285fbe81c308366cadb4708a5851bada90c11cd670774f500e2c2fc04c4eb7e815bb6b33916d32eec8b932810efa808790913814b05cb941e89666294a7f3a70c372057ee635e4f651f078569825a20755451ab061d5557cc60acd78859e95ab9298098d545acdcf78069fa50be2ff74e2aabe5ed073d0faa6764942bb4057c0c5006f3ba6929b09f324486524ccdea990f37588faf77dc1c503c5d517e2d24cf7c0e514f00dcf62f9fcedb2e0fb4dbbc0b95ed53076fa6fc067f0b72c3c5a960be34d0483854a59ef831be62cdf104ac8e2c57c1b9628d0c5740c9416f5a3563acb09ee8bd257f2cb2517eb0b00f2f8b2fbb0d81777cfb7fda6abae47dc892dc6ccd728845d0862b7be76d5986454f7f9ab3e4c3004ba06f7862d534d444d61622c657bb7f1bf0d62adcfb7bb26562116b5858751238f77687622361e165fbb11dc76c61a2b63087bc0cbe3cf0f1b95e9017ecc87bb03d99fb5febb86670c1806bec54ac92715fabb58b3f6f5a16ea5183f6d051a610cef050fb3feec3d9590014a61878c9ff50f3cde102e6e1a5d484da99158281ba8e5f55a6465462f', NULL);
INSERT INTO public.follower_positions VALUES ('monthly_fees', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('api_clients', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('usage', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('timelines', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('organizations', 2, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('open_slices', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('unfinished', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('webhook_endpoints', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('link_spans', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('plans', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('statements', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('links', 3, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('transactions', 5, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('jobs', 2, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('wallets', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('proposals', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 1772366400000000, NULL, NULL);
INSERT INTO public.follower_positions VALUES ('audit_tree', 1, 24, 'd7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, NULL, NULL, NULL);
INSERT INTO public.job_counts VALUES ('485201c8-0453-4490-8796-26d9d3a30070', '2026-03', 0, 0, 1, 0, 0);
INSERT INTO public.job_settlements VALUES ('c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', 14, '[0]', NULL, '2026-03', '\x0449261e2e0edf5f209a0cff07c4762bd035e23c0cb740e9d59120afb1c0ca5a5232f63d2c4005ebb589b2154b600747ebd3478583cbb8d020d6331dff29cb2cb49bb6b603b4029bf2f817b80ce140e41974b42676');
INSERT INTO public.job_settlements VALUES ('c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', 15, '[1]', '["The lookup service is unavailable."]', NULL, NULL);
INSERT INTO public.jobs VALUES ('c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', '485201c8-0453-4490-8796-26d9d3a30070', 11, 'completed', 2, 1, 1, 0, 5000, 'USD', '25179a95-0a96-5fd1-ae74-a61b033704ff', 0, 1772366400000000, 1772366400000000, 1772366400000000, '2026-03', '\xcd88db06aad2dcf032cdef97d4cd32f027306f2f7adb67552b7bc861f5117c7293649d632255546645c58307d97ac295a36c1dc97498012a00a6e6fb5cf43df35a00297534ba9d4373bf05d050');
INSERT INTO public.log_events VALUES ('93c912a1-18f6-54ba-9ef9-aed3566c6e65', 1, 'ledger.opened', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226c6564676572222c22726571756573745f6964223a22726571756573742d31222c2263757272656e6379223a22555344227d', 1);
INSERT INTO public.log_events VALUES ('485201c8-0453-4490-8796-26d9d3a30070', 1, 'organization.registered', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226f7267616e697a6174696f6e222c22726571756573745f6964223a22726571756573742d31222c226e616d65223a224669727374203331222c2270726963655f6d6963726f73223a6e756c6c2c226d6f6e74686c795f6c696e6b5f6665655f6d6963726f73223a307d', 2);
INSERT INTO public.log_events VALUES ('d7ac5f53-6533-5532-af44-5d50e78ebc2f', 1, 'wallet.opened', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a2277616c6c6574222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c2263757272656e6379223a22555344227d', 3);
INSERT INTO public.log_events VALUES ('1def9277-898b-559e-8c3f-2504dcbae250', 1, 'deposit.made', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226465706f736974222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c227265666572656e6365223a2262616e6b2d31222c22616d6f756e745f6d6963726f73223a313030303030302c227472616e73616374696f6e5f6964223a2231333538353432652d636537322d353866382d623233382d343762613063303338643165227d', 4);
INSERT INTO public.log_events VALUES ('d7ac5f53-6533-5532-af44-5d50e78ebc2f', 2, 'wallet.deposited', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c2263757272656e6379223a22555344222c2273657175656e6365223a312c227472616e73616374696f6e5f6964223a2231333538353432652d636537322d353866382d623233382d343762613063303338643165222c22616d6f756e745f6d6963726f73223a313030303030302c2262616c616e63655f6d6963726f73223a313030303030302c227265666572656e6365223a7b2274797065223a226465706f736974222c226964223a2262616e6b2d31227d2c226465736372697074696f6e223a224465706f736974222c226d65746164617461223a7b7d7d', 5);
INSERT INTO public.log_events VALUES ('f9b87ee0-f25d-5829-8d91-80b9d3716364', 1, 'api_client.registered', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226170695f636c69656e74222c22726571756573745f6964223a22726571756573742d31222c22636c69656e745f6964223a22636c5f373362333437303862653930346232306139376566373035222c226f7267616e697a6174696f6e5f6964223a6e756c6c2c2273636f706573223a5b226c6f6f6b7570222c22706c616e73222c226c696e6b73222c2277616c6c6574225d2c227365637265745f68617368223a2230303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030227d', 6);
INSERT INTO public.log_events VALUES ('ff02b3a6-8719-5334-bf0c-49d791fe0ac0', 1, 'plan.published', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a22706c616e222c22726571756573745f6964223a22696d706f7274222c226f7267616e697a6174696f6e5f6964223a6e756c6c2c227465726d73223a7b226e616d65223a224669727374222c2270726f76696465725f706c616e5f6964223a226669727374222c2272657461696c5f70726963655f6d6963726f73223a343530303030302c2263757272656e6379223a22555344222c22646174615f6d62223a313030302c2276616c69646974795f64617973223a372c22636f7665726167655f74797065223a226c6f63616c222c2273706f6e736f725f70726f66696c6573223a5b7b226964223a2273702d31222c226e616d65223a2250726f66696c652073702d31222c22636f6c6f72223a2223314636464542227d5d2c22636f766572616765223a5b7b22636f756e7472795f636f6465223a224445222c226f70657261746f7273223a5b7b226e616d65223a224f70657261746f722030222c226e6574776f726b5f7479706573223a5b223447222c223547225d7d5d7d5d7d2c22656e61626c6564223a747275652c226578636c756465645f6f7267616e697a6174696f6e73223a5b2234383532303163382d303435332d343439302d383739362d323664396433613330303730225d7d', 7);
INSERT INTO public.log_events VALUES ('70d795b9-917f-4e1f-b91d-1164423c8b5f', 1, 'organization.registered', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226f7267616e697a6174696f6e222c22726571756573745f6964223a22726571756573742d31222c226e616d65223a224e756d62657220302e3131323339383836313038303233353738222c2270726963655f6d6963726f73223a6e756c6c2c226d6f6e74686c795f6c696e6b5f6665655f6d6963726f73223a307d', 8);
INSERT INTO public.log_events VALUES ('82175d34-8a86-5742-b218-9c11d307cacd', 1, 'wallet.opened', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a2277616c6c6574222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2237306437393562392d393137662d346531662d623931642d313136343432336338623566222c2263757272656e6379223a22555344227d', 9);
INSERT INTO public.log_events VALUES ('13ea6a9d-45c1-5fc5-8d05-f3266b3db8fc', 1, 'api_client.registered', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226170695f636c69656e74222c22726571756573745f6964223a22726571756573742d31222c22636c69656e745f6964223a22636c5f613933303839333538663563346230653932326332666335222c226f7267616e697a6174696f6e5f6964223a2237306437393562392d393137662d346531662d623931642d313136343432336338623566222c2273636f706573223a5b226c6f6f6b7570222c22706c616e73222c226c696e6b73222c2277616c6c6574225d2c227365637265745f68617368223a2230303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030227d', 10);
INSERT INTO public.log_events VALUES ('c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', 1, 'bulk_job.created', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a2262756c6b5f6a6f62222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c22746f74616c5f636f756e74223a322c22736c6963655f73697a65223a3235302c226974656d5f70726963655f6d6963726f73223a353030302c227072696365223a7b22616d6f756e745f6d6963726f73223a31303030302c2263757272656e6379223a22555344222c227472616e73616374696f6e5f6964223a2232353137396139352d306139362d356664312d616537342d613631623033333730346666227d2c22706572736f6e616c223a7b226d6f6e7468223a22323032362d3033222c22626f78223a227a596a6242717253335041797a652b58314d30793843637762793936323264564b3376495966555266484b545a4a316a496c56555a6b58466777665a65734b566f3277647958535941536f41707562375850513938316f414b58553075703144633738463046413d227d7d', 11);
INSERT INTO public.log_events VALUES ('d7ac5f53-6533-5532-af44-5d50e78ebc2f', 3, 'wallet.charged', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c2263757272656e6379223a22555344222c2273657175656e6365223a322c227472616e73616374696f6e5f6964223a2232353137396139352d306139362d356664312d616537342d613631623033333730346666222c22616d6f756e745f6d6963726f73223a31303030302c2262616c616e63655f6d6963726f73223a3939303030302c227265666572656e6365223a7b2274797065223a226a6f62222c226964223a2263323036326436662d306564392d346265652d616166302d383239373465623463306136227d2c226465736372697074696f6e223a2242756c6b206e756d626572206c6f6f6b7570222c226d65746164617461223a7b22636f756e74223a322c2270726963655f7065725f6c6f6f6b7570223a22302e303035227d2c226b696e64223a2262756c6b5f6c6f6f6b7570227d', 12);
INSERT INTO public.log_events VALUES ('c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', 2, 'bulk_job.slice_started', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c22736c6963655f696e646578223a302c22617474656d7074223a317d', 13);
INSERT INTO public.log_events VALUES ('c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', 3, 'bulk_job.items_completed', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c22736c6963655f696e646578223a302c22696e6465786573223a5b305d2c22706572736f6e616c223a7b226d6f6e7468223a22323032362d3033222c22626f78223a2242456b6d4869344f333138676d677a2f423852324b394131346a774d74304470315a456772374841796c70534d7659394c4541463637574a7368564c5941644836394e486859504c754e4167316a4d642f796e4c4c4c53627472594474414b623876675875417a68514f515a644c516d64673d3d227d2c2261736b6564223a5b7b2270726f7669646572223a226f66666c696e65222c22636f756e74223a317d5d7d', 14);
INSERT INTO public.log_events VALUES ('c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', 4, 'bulk_job.items_failed', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c22736c6963655f696e646578223a302c22696e6465786573223a5b315d2c226572726f7273223a5b22546865206c6f6f6b7570207365727669636520697320756e617661696c61626c652e225d2c22726566756e64223a7b22616d6f756e745f6d6963726f73223a353030302c227472616e73616374696f6e5f6964223a2262383965316264352d663531382d356639392d623735372d346634363130343631386364227d7d', 15);
INSERT INTO public.log_events VALUES ('c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', 5, 'bulk_job.finished', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730227d', 16);
INSERT INTO public.log_events VALUES ('d7ac5f53-6533-5532-af44-5d50e78ebc2f', 4, 'wallet.refunded', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c2263757272656e6379223a22555344222c2273657175656e6365223a332c227472616e73616374696f6e5f6964223a2262383965316264352d663531382d356639392d623735372d346634363130343631386364222c22616d6f756e745f6d6963726f73223a353030302c2262616c616e63655f6d6963726f73223a3939353030302c227265666572656e6365223a7b2274797065223a226a6f62222c226964223a2263323036326436662d306564392d346265652d616166302d383239373465623463306136227d2c226465736372697074696f6e223a22526566756e64206f66206661696c65642062756c6b206c6f6f6b7570206974656d73222c226d65746164617461223a7b22636f756e74223a317d2c226368617267655f6964223a2232353137396139352d306139362d356664312d616537342d613631623033333730346666222c22726561736f6e223a226c6f6f6b75705f756e617661696c61626c65227d', 17);
INSERT INTO public.log_events VALUES ('f9b87ee0-f25d-5829-8d91-80b9d3716364', 2, 'api_client.secret_rotated', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c22636c69656e745f6964223a22636c5f373362333437303862653930346232306139376566373035222c227365637265745f68617368223a22302e3133363537383532343334343933303132222c226b6570745f686173686573223a5b2230303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030225d7d', 18);
INSERT INTO public.log_events VALUES ('e34cccd1-a9ed-52d5-b2e8-48f3aed463c2', 1, 'deposit.made', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226465706f736974222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c227265666572656e6365223a2262616e6b2d383237303437333834222c22616d6f756e745f6d6963726f73223a3530303030302c227472616e73616374696f6e5f6964223a2263353139313436652d313530652d353131372d613637312d356165653734663265396436227d', 19);
INSERT INTO public.log_events VALUES ('d7ac5f53-6533-5532-af44-5d50e78ebc2f', 5, 'wallet.deposited', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c2263757272656e6379223a22555344222c2273657175656e6365223a342c227472616e73616374696f6e5f6964223a2263353139313436652d313530652d353131372d613637312d356165653734663265396436222c22616d6f756e745f6d6963726f73223a3530303030302c2262616c616e63655f6d6963726f73223a313439353030302c227265666572656e6365223a7b2274797065223a226465706f736974222c226964223a2262616e6b2d383237303437333834227d2c226465736372697074696f6e223a224465706f736974222c226d65746164617461223a7b7d7d', 20);
INSERT INTO public.log_events VALUES ('1de02ea6-ca6d-424a-9962-869e2c7707de', 1, 'number_lookup.answered', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226e756d6265725f6c6f6f6b7570222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c22736f75726365223a226c697665222c2261735f6f66223a22323032362d30332d30315431323a30303a30305a222c2270726f7669646572223a226f66666c696e65222c227072696365223a7b22616d6f756e745f6d6963726f73223a353030302c2263757272656e6379223a22555344222c227472616e73616374696f6e5f6964223a2237383839303136332d326566302d356531332d613735352d643062383830346130383863227d2c22706572736f6e616c223a7b226d6f6e7468223a22323032362d3033222c22626f78223a2241787259795245434a3264396a3146514236465950706e6e57362f71685271517344525a446265456f452f76622b454b66782f6d7a4f4b426866322f6a57564e723436594955566659642f535750377273624f57703153435a6a6d484568742f7748737176675a543837432b5a42733d227d7d', 21);
INSERT INTO public.log_events VALUES ('d7ac5f53-6533-5532-af44-5d50e78ebc2f', 6, 'wallet.charged', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c2263757272656e6379223a22555344222c2273657175656e6365223a352c227472616e73616374696f6e5f6964223a2237383839303136332d326566302d356531332d613735352d643062383830346130383863222c22616d6f756e745f6d6963726f73223a353030302c2262616c616e63655f6d6963726f73223a313439303030302c227265666572656e6365223a7b2274797065223a226c6f6f6b7570222c226964223a2231646530326561362d636136642d343234612d393936322d383639653263373730376465227d2c226465736372697074696f6e223a224e756d626572206c6f6f6b7570222c226d65746164617461223a7b7d2c226b696e64223a226c6f6f6b7570227d', 22);
INSERT INTO public.log_events VALUES ('a9419feb-4964-5fe0-b1d1-ba6bb2a3af5d', 1, 'deposit.made', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c226f726967696e61746f725f746f706963223a226465706f736974222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c227265666572656e6365223a2262616e6b2d373131353934313739222c22616d6f756e745f6d6963726f73223a3530303030302c227472616e73616374696f6e5f6964223a2239646330313330652d336535312d353038372d616331342d303561333165303538306461227d', 23);
INSERT INTO public.log_events VALUES ('d7ac5f53-6533-5532-af44-5d50e78ebc2f', 7, 'wallet.deposited', '\x7b2274696d657374616d70223a22323032362d30332d30315431323a30303a30305a222c22726571756573745f6964223a22726571756573742d31222c226f7267616e697a6174696f6e5f6964223a2234383532303163382d303435332d343439302d383739362d323664396433613330303730222c2263757272656e6379223a22555344222c2273657175656e6365223a362c227472616e73616374696f6e5f6964223a2239646330313330652d336535312d353038372d616331342d303561333165303538306461222c22616d6f756e745f6d6963726f73223a3530303030302c2262616c616e63655f6d6963726f73223a313939303030302c227265666572656e6365223a7b2274797065223a226465706f736974222c226964223a2262616e6b2d373131353934313739227d2c226465736372697074696f6e223a224465706f736974222c226d65746164617461223a7b7d7d', 24);
INSERT INTO public.log_events_servers VALUES ('6b0b193bcecbfb7b/00000001', 'aba42ea4-d2fd-4524-b788-9f9f3fe03ed5');
INSERT INTO public.organizations VALUES ('485201c8-0453-4490-8796-26d9d3a30070', 'First 31', 'active', NULL, 0, true, 1772366400000000, NULL, NULL, NULL);
INSERT INTO public.organizations VALUES ('70d795b9-917f-4e1f-b91d-1164423c8b5f', 'Number 0.11239886108023578', 'active', NULL, 0, true, 1772366400000000, NULL, NULL, NULL);
INSERT INTO public.personal_keys VALUES ('485201c8-0453-4490-8796-26d9d3a30070', '2026-03', '\xa940b436e3c4be1c20ea33bf4c02ff76f56bfe8877e04e146e3593bb1aabc6b7');
INSERT INTO public.personal_keys VALUES ('70d795b9-917f-4e1f-b91d-1164423c8b5f', '2026-03', '\x010fe1099841c824f27cbfa16069444366b84f4b4eae793014c0f63162201d72');
INSERT INTO public.plan_countries VALUES ('ff02b3a6-8719-5334-bf0c-49d791fe0ac0', 'DE');
INSERT INTO public.plan_exclusions VALUES ('ff02b3a6-8719-5334-bf0c-49d791fe0ac0', '485201c8-0453-4490-8796-26d9d3a30070');
INSERT INTO public.plan_sponsor_profiles VALUES ('ff02b3a6-8719-5334-bf0c-49d791fe0ac0', 'sp-1', 'Profile sp-1');
INSERT INTO public.plans VALUES ('ff02b3a6-8719-5334-bf0c-49d791fe0ac0', NULL, 'first', 'First', 'local', true, '{"name":"First","provider_plan_id":"first","retail_price_micros":4500000,"currency":"USD","data_mb":1000,"validity_days":7,"coverage_type":"local","sponsor_profiles":[{"id":"sp-1","name":"Profile sp-1","color":"#1F6FEB"}],"coverage":[{"country_code":"DE","operators":[{"name":"Operator 0","network_types":["4G","5G"]}]}]}');
INSERT INTO public.schema_versions VALUES ('stores', 2);
INSERT INTO public.schema_versions VALUES ('network_numbers', 1);
INSERT INTO public.schema_versions VALUES ('slices_in_hand', 1);
INSERT INTO public.schema_versions VALUES ('rate_limits', 1);
INSERT INTO public.schema_versions VALUES ('reading_turns', 1);
INSERT INTO public.schema_versions VALUES ('provider_paces', 1);
INSERT INTO public.schema_versions VALUES ('simulated_clock', 1);
INSERT INTO public.schema_versions VALUES ('simulated_network', 1);
INSERT INTO public.schema_versions VALUES ('personal_keys', 1);
INSERT INTO public.schema_versions VALUES ('checkpoints', 1);
INSERT INTO public.schema_versions VALUES ('notes', 1);
INSERT INTO public.schema_versions VALUES ('audit_tree', 1);
INSERT INTO public.schema_versions VALUES ('webhook_deliveries', 1);
INSERT INTO public.schema_versions VALUES ('positions', 1);
INSERT INTO public.statement_lines VALUES ('485201c8-0453-4490-8796-26d9d3a30070', '2026-03', 'bulk_lookup', 'USD', 1000000, 990000, 2, 2, 12, 12, 1, 10000, 0);
INSERT INTO public.statement_lines VALUES ('485201c8-0453-4490-8796-26d9d3a30070', '2026-03', 'refund', 'USD', 990000, 995000, 3, 3, 17, 17, 1, 0, 5000);
INSERT INTO public.statement_lines VALUES ('485201c8-0453-4490-8796-26d9d3a30070', '2026-03', 'deposit', 'USD', 0, 1990000, 1, 6, 5, 24, 3, 0, 2000000);
INSERT INTO public.statement_lines VALUES ('485201c8-0453-4490-8796-26d9d3a30070', '2026-03', 'lookup', 'USD', 1495000, 1490000, 5, 5, 22, 22, 1, 5000, 0);
INSERT INTO public.transaction_hours VALUES ('485201c8-0453-4490-8796-26d9d3a30070', 'bulk_lookup', 492324, 1, 2, 2, 10000, 0);
INSERT INTO public.transaction_hours VALUES ('485201c8-0453-4490-8796-26d9d3a30070', 'refund', 492324, 1, 3, 3, 0, 5000);
INSERT INTO public.transaction_hours VALUES ('485201c8-0453-4490-8796-26d9d3a30070', 'deposit', 492324, 3, 1, 6, 0, 2000000);
INSERT INTO public.transaction_hours VALUES ('485201c8-0453-4490-8796-26d9d3a30070', 'lookup', 492324, 1, 5, 5, 5000, 0);
INSERT INTO public.transaction_hours VALUES ('00000000-0000-0000-0000-000000000000', 'bulk_lookup', 492324, 1, 12, 12, 10000, 0);
INSERT INTO public.transaction_hours VALUES ('00000000-0000-0000-0000-000000000000', 'refund', 492324, 1, 17, 17, 0, 5000);
INSERT INTO public.transaction_hours VALUES ('00000000-0000-0000-0000-000000000000', 'deposit', 492324, 3, 5, 24, 0, 2000000);
INSERT INTO public.transaction_hours VALUES ('00000000-0000-0000-0000-000000000000', 'lookup', 492324, 1, 22, 22, 5000, 0);
INSERT INTO public.transactions VALUES ('1358542e-ce72-58f8-b238-47ba0c038d1e', '485201c8-0453-4490-8796-26d9d3a30070', 1, 5, 'deposit', 'credit', 1000000, 1000000, 'USD', 1772366400000000, 'Deposit', 'deposit', 'bank-1', '{}', NULL, NULL);
INSERT INTO public.transactions VALUES ('25179a95-0a96-5fd1-ae74-a61b033704ff', '485201c8-0453-4490-8796-26d9d3a30070', 2, 12, 'bulk_lookup', 'debit', 10000, 990000, 'USD', 1772366400000000, 'Bulk number lookup', 'job', 'c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', '{"count":2,"price_per_lookup":"0.005"}', NULL, NULL);
INSERT INTO public.transactions VALUES ('b89e1bd5-f518-5f99-b757-4f46104618cd', '485201c8-0453-4490-8796-26d9d3a30070', 3, 17, 'refund', 'credit', 5000, 995000, 'USD', 1772366400000000, 'Refund of failed bulk lookup items', 'job', 'c2062d6f-0ed9-4bee-aaf0-82974eb4c0a6', '{"count":1}', '25179a95-0a96-5fd1-ae74-a61b033704ff', 'lookup_unavailable');
INSERT INTO public.transactions VALUES ('c519146e-150e-5117-a671-5aee74f2e9d6', '485201c8-0453-4490-8796-26d9d3a30070', 4, 20, 'deposit', 'credit', 500000, 1495000, 'USD', 1772366400000000, 'Deposit', 'deposit', 'bank-827047384', '{}', NULL, NULL);
INSERT INTO public.transactions VALUES ('78890163-2ef0-5e13-a755-d0b8804a088c', '485201c8-0453-4490-8796-26d9d3a30070', 5, 22, 'lookup', 'debit', 5000, 1490000, 'USD', 1772366400000000, 'Number lookup', 'lookup', '1de02ea6-ca6d-424a-9962-869e2c7707de', '{}', NULL, NULL);
INSERT INTO public.transactions VALUES ('9dc0130e-3e51-5087-ac14-05a31e0580da', '485201c8-0453-4490-8796-26d9d3a30070', 6, 24, 'deposit', 'credit', 500000, 1990000, 'USD', 1772366400000000, 'Deposit', 'deposit', 'bank-711594179', '{}', NULL, NULL);
INSERT INTO public.usage VALUES ('485201c8-0453-4490-8796-26d9d3a30070', '2026-03-01', 'bulk_lookup', '', '', 1, 10000, 1, 5000);
INSERT INTO public.usage VALUES ('485201c8-0453-4490-8796-26d9d3a30070', '2026-03-01', 'lookup', '', '', 1, 5000, 0, 0);
INSERT INTO public.wallets VALUES ('70d795b9-917f-4e1f-b91d-1164423c8b5f', 'USD', 0, 0);
INSERT INTO public.wallets VALUES ('485201c8-0453-4490-8796-26d9d3a30070', 'USD', 1990000, 6);
ALTER TABLE ONLY public.adjustment_proposals
    ADD CONSTRAINT adjustment_proposals__6b0b195ab3fed4f4_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_clients
    ADD CONSTRAINT api_clients__6b0b195aeb55ae36_pkey PRIMARY KEY (client_id);
ALTER TABLE ONLY public.audit_tiles
    ADD CONSTRAINT audit_tiles_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.closed_months
    ADD CONSTRAINT closed_months__6b0b195a24cb5042_pkey PRIMARY KEY (month);
ALTER TABLE ONLY public.follower_positions
    ADD CONSTRAINT follower_positions_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.installation_notes
    ADD CONSTRAINT installation_notes_pkey PRIMARY KEY (subject, at);
ALTER TABLE ONLY public.job_counts
    ADD CONSTRAINT job_counts__6b0b195a8ca7537f_pkey PRIMARY KEY (organization_id, month);
ALTER TABLE ONLY public.job_settlements
    ADD CONSTRAINT job_settlements__6b0b195a8ca7537f_pkey PRIMARY KEY (job_id, "position");
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs__6b0b195a8ca7537f_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.link_activations
    ADD CONSTRAINT link_activations__6b0b195a85e614d1_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.link_counts
    ADD CONSTRAINT link_counts__6b0b195a85e614d1_pkey PRIMARY KEY (organization_id);
ALTER TABLE ONLY public.link_plan_names
    ADD CONSTRAINT link_plan_names__6b0b195a85e614d1_pkey PRIMARY KEY (organization_id, folded_name);
ALTER TABLE ONLY public.link_spans
    ADD CONSTRAINT link_spans__6b0b195a80d48395_pkey PRIMARY KEY (link_id, "position");
ALTER TABLE ONLY public.link_timelines
    ADD CONSTRAINT link_timelines__6b0b195aa6314e76_pkey PRIMARY KEY (link_id, "position");
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links__6b0b195a85e614d1_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.log_events
    ADD CONSTRAINT log_events_pkey PRIMARY KEY (originator_id, originator_version);
ALTER TABLE ONLY public.log_events_servers
    ADD CONSTRAINT log_events_servers_pkey PRIMARY KEY (place);
ALTER TABLE ONLY public.lookup_cache
    ADD CONSTRAINT lookup_cache_pkey PRIMARY KEY (organization_id, phone_number);
ALTER TABLE ONLY public.monthly_fees
    ADD CONSTRAINT monthly_fees__6b0b195aa89b80b1_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.network_number_parts
    ADD CONSTRAINT network_number_parts_pkey PRIMARY KEY (organization_id, part, link_id);
ALTER TABLE ONLY public.network_readings
    ADD CONSTRAINT network_readings_pkey PRIMARY KEY (link_id);
ALTER TABLE ONLY public.open_items
    ADD CONSTRAINT open_items__6b0b195afbc23f1e_pkey PRIMARY KEY (organization_id);
ALTER TABLE ONLY public.open_slices
    ADD CONSTRAINT open_slices__6b0b195afbc23f1e_pkey PRIMARY KEY (job_id, slice_index);
ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations__6b0b195a3f935ef1_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.personal_keys
    ADD CONSTRAINT personal_keys_pkey PRIMARY KEY (organization_id, month);
ALTER TABLE ONLY public.plan_countries
    ADD CONSTRAINT plan_countries__6b0b195a150e0835_pkey PRIMARY KEY (plan_id, country_code);
ALTER TABLE ONLY public.plan_exclusions
    ADD CONSTRAINT plan_exclusions__6b0b195a150e0835_pkey PRIMARY KEY (plan_id, organization_id);
ALTER TABLE ONLY public.plan_sponsor_profiles
    ADD CONSTRAINT plan_sponsor_profiles__6b0b195a150e0835_pkey PRIMARY KEY (plan_id, profile_id);
ALTER TABLE ONLY public.plans
    ADD CONSTRAINT plans__6b0b195a150e0835_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.provider_paces
    ADD CONSTRAINT provider_paces_pkey PRIMARY KEY (provider);
ALTER TABLE ONLY public.rate_limits
    ADD CONSTRAINT rate_limits_pkey PRIMARY KEY (organization_id);
ALTER TABLE ONLY public.reading_turns
    ADD CONSTRAINT reading_turns_pkey PRIMARY KEY (link_id);
ALTER TABLE ONLY public.refund_reasons
    ADD CONSTRAINT refund_reasons__6b0b195a262379b6_pkey PRIMARY KEY (transaction_id);
ALTER TABLE ONLY public.sandbox_attempts
    ADD CONSTRAINT sandbox_attempts_pkey PRIMARY KEY (organization_id, phone_number);
ALTER TABLE ONLY public.schema_versions
    ADD CONSTRAINT schema_versions_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.simulated_clock
    ADD CONSTRAINT simulated_clock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.simulated_endpoints
    ADD CONSTRAINT simulated_endpoints_pkey PRIMARY KEY (endpoint_id);
ALTER TABLE ONLY public.simulated_esims
    ADD CONSTRAINT simulated_esims_pkey PRIMARY KEY (iccid);
ALTER TABLE ONLY public.slices_in_hand
    ADD CONSTRAINT slices_in_hand_pkey PRIMARY KEY (job_id, slice_index);
ALTER TABLE ONLY public.statement_lines
    ADD CONSTRAINT statement_lines__6b0b195a24cb5042_pkey PRIMARY KEY (organization_id, month, kind);
ALTER TABLE ONLY public.throttle
    ADD CONSTRAINT throttle_pkey PRIMARY KEY (subject);
ALTER TABLE ONLY public.transaction_hours
    ADD CONSTRAINT transaction_hours__6b0b195a262379b6_pkey PRIMARY KEY (organization_id, kind, hour);
ALTER TABLE ONLY public.transaction_links
    ADD CONSTRAINT transaction_links__6b0b195a262379b6_pkey PRIMARY KEY (link_id, transaction_id);
ALTER TABLE ONLY public.transactions
    ADD CONSTRAINT transactions__6b0b195a262379b6_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.unfinished
    ADD CONSTRAINT unfinished__6b0b195a7fe5e64f_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage__6b0b195a4dad038e_pkey PRIMARY KEY (organization_id, day, kind, plan_id);
ALTER TABLE ONLY public.wallets
    ADD CONSTRAINT wallets__6b0b195a36b1f507_pkey PRIMARY KEY (organization_id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints__6b0b195af29435fc_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_health
    ADD CONSTRAINT webhook_health_pkey PRIMARY KEY (endpoint_id);
CREATE INDEX ix_audit_tiles_first_position ON public.audit_tiles USING btree (first_position);
CREATE INDEX ix_checkpoints_position ON public.checkpoints USING btree ("position");
CREATE INDEX ix_network_number_parts_link_id ON public.network_number_parts USING btree (link_id);
CREATE INDEX ix_reading_turns_ends_at ON public.reading_turns USING btree (ends_at);
CREATE INDEX ix_reading_turns_position ON public.reading_turns USING btree ("position");
CREATE INDEX jobs_by_status__6b0b195a8ca7537f ON public.jobs USING btree (organization_id, status, "position", month);
CREATE INDEX jobs_listed__6b0b195a8ca7537f ON public.jobs USING btree (organization_id, "position", month);
CREATE INDEX jobs_unfinished__6b0b195a8ca7537f ON public.jobs USING btree (moved_at, id) WHERE (finished_at IS NULL);
CREATE INDEX link_activations_by_link__6b0b195a85e614d1 ON public.link_activations USING btree (link_id, "position");
CREATE INDEX link_activations_by_plan__6b0b195a85e614d1 ON public.link_activations USING btree (organization_id, folded_plan_name, link_id) WHERE (removed_at IS NULL);
CREATE INDEX link_spans_by_organization__6b0b195a80d48395 ON public.link_spans USING btree (organization_id, from_at);
CREATE UNIQUE INDEX link_spans_lasting__6b0b195a80d48395 ON public.link_spans USING btree (link_id) WHERE (until_at IS NULL);
CREATE INDEX link_texts__6b0b195a85e614d1 ON public.links USING gin (organization_id, texts public.gin_trgm_ops) WITH (fastupdate='on', gin_pending_list_limit='256');
CREATE UNIQUE INDEX links_by_number__6b0b195a85e614d1 ON public.links USING btree (organization_id, number);
CREATE INDEX links_by_organization__6b0b195a85e614d1 ON public.links USING btree (organization_id, "position");
CREATE UNIQUE INDEX links_by_position__6b0b195a85e614d1 ON public.links USING btree ("position");
CREATE INDEX links_by_status__6b0b195a85e614d1 ON public.links USING btree (organization_id, status, "position");
CREATE UNIQUE INDEX log_events_notification_id_idx ON public.log_events USING btree (notification_id);
CREATE INDEX lookup_cache_by_age ON public.lookup_cache USING btree (as_of);
CREATE UNIQUE INDEX monthly_fees_by_month__6b0b195aa89b80b1 ON public.monthly_fees USING btree (organization_id, month);
CREATE INDEX monthly_fees_owed__6b0b195aa89b80b1 ON public.monthly_fees USING btree (organization_id, month) WHERE (charged_at IS NULL);
CREATE INDEX open_slices_in_order__6b0b195afbc23f1e ON public.open_slices USING btree (organization_id, "position", slice_index);
CREATE INDEX plans_by_name__6b0b195a150e0835 ON public.plans USING btree (name, id);
CREATE INDEX plans_by_owner__6b0b195a150e0835 ON public.plans USING btree (organization_id, provider_plan_id);
CREATE INDEX reading_turns_answered ON public.reading_turns USING btree (network, answered_at);
CREATE INDEX reading_turns_due ON public.reading_turns USING btree (network, organization_id, due_at);
CREATE INDEX simulated_endpoints_by_iccid ON public.simulated_endpoints USING btree (iccid);
CREATE INDEX simulated_esims_free ON public.simulated_esims USING btree (is_free, sponsor_profile_id, serial);
CREATE UNIQUE INDEX simulated_esims_made ON public.simulated_esims USING btree (sponsor_profile_id, serial);
CREATE INDEX statement_lines_by_month__6b0b195a24cb5042 ON public.statement_lines USING btree (month);
CREATE INDEX transactions_by_kind__6b0b195a262379b6 ON public.transactions USING btree (organization_id, kind, sequence);
CREATE INDEX transactions_by_position__6b0b195a262379b6 ON public.transactions USING btree (kind, "position");
CREATE INDEX transactions_by_reference__6b0b195a262379b6 ON public.transactions USING btree (organization_id, reference_id, sequence);
CREATE UNIQUE INDEX transactions_by_sequence__6b0b195a262379b6 ON public.transactions USING btree (organization_id, sequence);
CREATE INDEX unfinished_by_due__6b0b195a7fe5e64f ON public.unfinished USING btree (due_at, id);
CREATE INDEX webhook_deliveries_by_age ON public.webhook_deliveries USING btree (created_at);
CREATE INDEX webhook_deliveries_due ON public.webhook_deliveries USING btree (endpoint_id, next_attempt_at, "position") WHERE ((status)::text = 'pending'::text);
CREATE INDEX webhook_deliveries_first ON public.webhook_deliveries USING btree (endpoint_id, about, "position") WHERE (((status)::text = 'pending'::text) AND (attempts = 0));
CREATE INDEX webhook_deliveries_newest ON public.webhook_deliveries USING btree (endpoint_id, organization_id, created_at, id);
CREATE INDEX webhook_deliveries_taken ON public.webhook_deliveries USING btree (endpoint_id, taken_until) WHERE (taken_until IS NOT NULL);
CREATE INDEX webhook_endpoints_by_change__6b0b195af29435fc ON public.webhook_endpoints USING btree (changed_position);
CREATE INDEX webhook_endpoints_by_organization__6b0b195af29435fc ON public.webhook_endpoints USING btree (organization_id);
