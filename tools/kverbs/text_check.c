// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tools/check: writes difficult strings, as JSON or as text, depending on the
 * argument.
 */
#include <string.h>

#include "kverbs.h"

/* Quotes, control characters, code points of 2 to 4 bytes, and invalid UTF-8. */
static const char odd[] =
	"\"\\/\b\f\r\t\x01\x1f\x7f|\xc2\x80|\xe2\x82\xac|\xf0\x9f\x98\x80|\n"
	"\xff|\xc0\xaf|\xe0\x80\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82|\xc3";

static void write_json(bool compact)
{
	struct json json;
	int i;

	json_start(&json, stdout, compact);
	json_object(&json, NULL);
	json_string(&json, "odd", odd);
	json_string(&json, odd, "");
	json_number(&json, "big", UINT64_MAX);
	json_null(&json, "nothing");
	json_flags(&json, "flags", cap_flag_names, 1ULL << 63 | 1 << 9 | 1);
	json_array(&json, "empty");
	json_end(&json);
	json_array(&json, "deep");
	for (i = 0; i < JSON_DEPTH - 3; i++)
		json_array(&json, NULL);
	json_object(&json, NULL);
	while (json.depth)
		json_end(&json);
}

static void write_links(void)
{
	char buf[TEXT_MAX];

	puts(text_link(2, 32, buf));
	puts(text_link(1, 1, buf));
	puts(text_link(16, 256, buf));
	puts(text_link(8, 16, buf));
	puts(text_link(3, 32, buf));
	puts(text_link(2, 512, buf));
}

static void write_units(void)
{
	char buf[TEXT_MAX];

	puts(text_bytes(0, buf));
	puts(text_bytes(4096, buf));
	puts(text_bytes(4097, buf));
	puts(text_bytes(1ULL << 63, buf));
	puts(text_timeout(0, buf));
	puts(text_timeout(14, buf));
	puts(text_timeout(20, buf));
	puts(text_timeout(31, buf));
	puts(text_port_state(9, buf));
	print_text(stdout, odd);
	putchar('\n');
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "text")) {
		write_links();
		write_units();
	} else {
		write_json(argc > 1 && !strcmp(argv[1], "lines"));
	}
	return finish_output(STATUS_OK);
}
