#include "lib/context/token_estimate.h"

#include <doctest/doctest.h>

#include <random>

namespace norma::context {
namespace {

TEST_CASE("token estimate: before the first report a third of the bytes, rounded up") {
  const TokenEstimator fresh;
  CHECK(fresh.Upper(0) == 0);
  CHECK(fresh.Upper(1) == 1);
  CHECK(fresh.Upper(3) == 1);
  CHECK(fresh.Upper(4) == 2);
  CHECK(fresh.Upper(3000) == 1000);
  CHECK(fresh.Likely(4000) == 1000);
  CHECK(fresh.Likely(3) == 0);
}

TEST_CASE("token estimate: a body of no or negative size has no tokens") {
  TokenEstimator estimator;
  estimator.Learn(1000, 250);
  CHECK(estimator.Upper(0) == 0);
  CHECK(estimator.Upper(-1) == 0);
  CHECK(estimator.Likely(-1) == 0);
  CHECK(TokenEstimator::OfContent(-1) == 0);
}

TEST_CASE("token estimate: the upper one follows the densest report, with a margin") {
  TokenEstimator estimator;
  estimator.Learn(1000, 250);
  CHECK(estimator.Upper(4000) == 1101);  // 1000 + 10 % + 1
  estimator.Learn(1000, 500);
  CHECK(estimator.Upper(4000) == 2201);
  estimator.Learn(1000, 200);  // thinner text later does not lower it
  CHECK(estimator.Upper(4000) == 2201);
}

TEST_CASE("token estimate: the likely one follows the last report") {
  TokenEstimator estimator;
  estimator.Learn(1000, 500);
  CHECK(estimator.Likely(4000) == 2000);
  estimator.Learn(1000, 200);
  CHECK(estimator.Likely(4000) == 800);
}

TEST_CASE("token estimate: never below a sixth of the bytes, never above one token a byte") {
  TokenEstimator thin;
  thin.Learn(1'000'000, 1);  // a provider that counts nearly nothing
  CHECK(thin.Upper(6000) == 1000);
  CHECK(thin.Upper(6001) == 1001);
  TokenEstimator dense;
  dense.Learn(10, 1'000'000);  // or far too much
  CHECK(dense.Upper(6000) == 6000);
  CHECK(dense.Likely(6000) == 6000);
}

TEST_CASE("token estimate: a report without numbers teaches nothing") {
  TokenEstimator estimator;
  estimator.Learn(0, 100);
  estimator.Learn(-5, 100);
  estimator.Learn(1000, 0);
  estimator.Learn(1000, -3);
  CHECK(estimator.Upper(3000) == 1000);
}

TEST_CASE("token estimate: content without a usage report is a third of its bytes, rounded up") {
  CHECK(TokenEstimator::OfContent(0) == 0);
  CHECK(TokenEstimator::OfContent(1) == 1);
  CHECK(TokenEstimator::OfContent(300) == 100);
  CHECK(TokenEstimator::OfContent(301) == 101);
}

TEST_CASE("token estimate: bounds and monotony hold for 10,000 random histories") {
  std::mt19937_64 random(46);
  int faults = 0;
  for (int i = 0; i < 10'000; ++i) {
    TokenEstimator estimator;
    int64_t bytes = 0;
    int64_t tokens = 0;
    for (auto n = random() % 4; n > 0; --n) {
      bytes = static_cast<int64_t>(random() % 2'000'000);
      tokens = static_cast<int64_t>(random() % 2'000'000);
      estimator.Learn(bytes, tokens);
    }
    // The same body again must fit into its estimate, as far as one token a byte allows.
    if (bytes > 0 && tokens > 0 && tokens <= bytes) faults += estimator.Upper(bytes) < tokens;
    const auto body = static_cast<int64_t>(random() % (int64_t{1} << 40));
    const int64_t upper = estimator.Upper(body);
    faults += upper < (body + 5) / 6 || upper > body;
    faults += estimator.Likely(body) > body;
    faults += estimator.Upper(body + 1) < upper;
  }
  CHECK(faults == 0);
}

}  // namespace
}  // namespace norma::context
