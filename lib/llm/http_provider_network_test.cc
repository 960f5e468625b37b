// What a provider makes of proxies that refuse, and of recordings that are missing or lost.
#include <doctest/doctest.h>

#include "lib/testing/provider_run.h"

using namespace norma;
using namespace norma::llm;
using namespace norma::testing;

TEST_CASE("http provider: a 407 is the proxy's refusal, without its password, and not repeated") {
  ProviderRun run;
  ProviderConfig config = ModelConfig();
  config.proxy = "http://user:secret-word@proxy:3128";
  run.Go({StatusAnswer(407), GoodReply()}, config);
  CHECK(!run.got.ok);
  CHECK(run.transport->sent.size() == 1);
  CHECK(run.failures[0].error_class == "proxy");
  CHECK(run.got.error ==
        Error{Code::kNetwork,
              "anthropic: status 407: the proxy http://proxy:3128 wants other credentials: no"});
  CHECK(run.got.proxy == "http://proxy:3128");
}

TEST_CASE("http provider: a replay miss and a lost recording are never tried again") {
  struct Row {
    HttpFailure failure;
    Code code;
    std::string error_class;
  };
  for (const Row& row : {Row{HttpFailure::kReplayMiss, Code::kReplayMiss, "replay_miss"},
                         Row{HttpFailure::kRecord, Code::kIo, "record"}}) {
    ProviderRun run;
    run.Go({BrokenExchange(row.failure, true), GoodReply()});
    CHECK(run.got.error.code == row.code);
    CHECK(run.failures[0].error_class == row.error_class);
    CHECK(run.transport->sent.size() == 1);
  }
}
