/* Extracts facts from a text as JSON that a schema accepts, in C:
 *
 *   extraction MODEL.gguf "Tom is nine years old."
 */
#include <pronk/pronk.h>
#include <stdio.h>

static int Print(const char* text, size_t n_bytes, void* user) {
  (void)user;
  return fwrite(text, 1, n_bytes, stdout) == n_bytes ? 0 : 1;
}

int main(int argc, char** argv) {
  static const char kSchema[] =
      "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 20},"
      " \"age\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 150}},"
      " \"required\": [\"name\", \"age\"], \"additionalProperties\": false}";
  char prompt[4096];
  pronk_model* model = NULL;
  pronk_grammar* grammar = NULL;
  pronk_session* session = NULL;
  pronk_limits limits = PRONK_LIMITS_INIT;
  pronk_status status;
  if (argc != 3) return 2;
  snprintf(prompt, sizeof prompt, "%s\nName and age as JSON: ", argv[2]);
  status = pronk_model_open(argv[1], &model);
  if (status == PRONK_OK) status = pronk_grammar_json_schema(kSchema, &grammar);
  if (status == PRONK_OK) status = pronk_session_open(model, "temperature=0", &session);
  limits.grammar = grammar;
  if (status == PRONK_OK)
    status = pronk_session_complete(session, prompt, &limits, Print, NULL, NULL);
  printf("\n");
  if (status != PRONK_OK) fprintf(stderr, "extraction: %s\n", pronk_error());
  pronk_session_free(session);
  pronk_grammar_free(grammar);
  pronk_model_free(model);
  return status == PRONK_OK ? 0 : 1;
}
