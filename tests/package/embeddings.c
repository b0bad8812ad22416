/* Says how close two texts are in meaning, from -1 to 1, in C:
 *
 *   embeddings MODEL.gguf "a goat" "a sheep"
 */
#include <pronk/pronk.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  pronk_model* model = NULL;
  pronk_embedder* embedder = NULL;
  pronk_facts facts = PRONK_FACTS_INIT;
  float* vectors = NULL;
  float product = 0;
  size_t n = 0, i;
  pronk_status status;
  if (argc != 4) return 2;
  status = pronk_model_open(argv[1], &model);
  if (status == PRONK_OK) status = pronk_model_facts(model, &facts);
  if (status == PRONK_OK) status = pronk_embedder_open(model, "mean", NULL, &embedder);
  if (status == PRONK_OK) {
    n = 2 * facts.embedding_length;
    vectors = malloc(n * sizeof *vectors);
    status = pronk_embedder_embed(embedder, (const char* const*)argv + 2, 2, vectors, n, &n);
  }
  for (i = 0; status == PRONK_OK && i < n / 2; ++i) product += vectors[i] * vectors[n / 2 + i];
  if (status == PRONK_OK) printf("%.3f\n", product);
  if (status != PRONK_OK) fprintf(stderr, "embeddings: %s\n", pronk_error());
  free(vectors);
  pronk_embedder_free(embedder);
  pronk_model_free(model);
  return status == PRONK_OK ? 0 : 1;
}
