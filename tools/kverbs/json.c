// SPDX-License-Identifier: GPL-2.0-only
/*
 * A writer of JSON (RFC 8259). The caller must give keys to members and none to
 * elements; this file takes care of commas, nesting, quoting and UTF-8.
 */
#include <inttypes.h>
#include <string.h>

#include "kverbs.h"

void json_start(struct json *json, FILE *out, bool compact)
{
	memset(json, 0, sizeof(*json));
	json->out = out;
	json->compact = compact;
}

/*
 * Returns the length of the UTF-8 sequence at text, 0 if it is invalid:
 * overlong, a surrogate, beyond the last code point, or truncated.
 */
static unsigned int utf8_length(const unsigned char *text)
{
	static const struct {
		unsigned char first, last, low, high;
		unsigned int length;
	} forms[] = {
		{ 0x01, 0x7f, 0x00, 0xff, 1 },
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	unsigned int i, k;

	for (i = 0; i < COUNT(forms); i++)
		if (text[0] >= forms[i].first && text[0] <= forms[i].last)
			break;
	if (i == COUNT(forms))
		return 0;
	if (forms[i].length > 1 &&
	    (text[1] < forms[i].low || text[1] > forms[i].high))
		return 0;
	/*
	 * The end of the string is not a continuation byte: nothing is read
	 * beyond it.
	 */
	for (k = 2; k < forms[i].length; k++)
		if ((text[k] & 0xc0) != 0x80)
			return 0;
	return forms[i].length;
}

static void json_quote(struct json *json, const char *value)
{
	const unsigned char *text = (const unsigned char *)value;
	unsigned int length;

	fputc('"', json->out);
	while (*text) {
		length = utf8_length(text);
		if (!length)
			fputs("\\ufffd", json->out);
		else if (*text == '"' || *text == '\\')
			fprintf(json->out, "\\%c", *text);
		else if (*text < 0x20 || *text == 0x7f)
			fprintf(json->out, "\\u%04x", *text);
		else
			fwrite(text, 1, length, json->out);
		text += length ?: 1;
	}
	fputc('"', json->out);
}

static void json_break(struct json *json)
{
	if (json->compact)
		return;
	fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
}

/* Writes what precedes each value. */
static void json_key(struct json *json, const char *key)
{
	if (json->depth) {
		if (json->filled[json->depth - 1])
			fputs(json->compact ? ", " : ",", json->out);
		json->filled[json->depth - 1] = true;
		json_break(json);
	}
	if (!key)
		return;
	json_quote(json, key);
	fputs(": ", json->out);
}

static void json_begin(struct json *json, const char *key, char opening,
		       char closing)
{
	json_key(json, key);
	fputc(opening, json->out);
	json->closing[json->depth] = closing;
	json->filled[json->depth] = false;
	json->depth++;
}

void json_object(struct json *json, const char *key)
{
	json_begin(json, key, '{', '}');
}

void json_array(struct json *json, const char *key)
{
	json_begin(json, key, '[', ']');
}

void json_end(struct json *json)
{
	json->depth--;
	if (json->filled[json->depth])
		json_break(json);
	fputc(json->closing[json->depth], json->out);
	if (!json->depth)
		fputc('\n', json->out);
}

void json_string(struct json *json, const char *key, const char *value)
{
	json_key(json, key);
	json_quote(json, value);
}

void json_number(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
	json_key(json, key);
	fputs("null", json->out);
}

void json_flags(struct json *json, const char *key, const struct name *names,
		uint64_t flags)
{
	char buf[TEXT_MAX];
	const char *name;

	json_array(json, key);
	while ((name = next_flag(names, &flags, buf)))
		json_string(json, NULL, name);
	json_end(json);
}
